package health

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A member that answered when the plan was made and not at its turn is a verdict
// on the cluster, not a failure of the command.
func TestAGateThatNeverOpensIsAVerdict(t *testing.T) {
	for name, tc := range map[string]struct{ cause, want error }{
		"a member that does not answer": {errors.New("m2 does not answer"), ErrUnhealthy},
		"a member that is behind":       {caughtUp(Facts{Members: []Member{{Name: "m1", Listed: true, Status: &Status{Index: 9000}}}}), ErrUnhealthy},
		"a member that is gone":         {errGone, ErrUnhealthy},
		"an alarm":                      {errArmed, ErrUnhealthy},
		"quorum at risk":                {ErrRefused, ErrRefused},
		"nobody answers":                {ErrUnknown, ErrUnknown},
	} {
		if got := notWell(tc.cause); !errors.Is(got, tc.want) || !errors.Is(got, tc.cause) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	doors := Doors{Dial: func(context.Context, string) (Client, error) { return nil, errors.New("refused") }, Now: time.Now}
	r := newRun(Tools{Doors: doors}, []string{"http://127.0.0.1:1"}, DefragOptions{GateTimeout: time.Nanosecond})
	before := Facts{Members: []Member{{ID: 1, Listed: true, Endpoint: "http://127.0.0.1:1", Status: &Status{}}}}
	if _, err := r.gate(t.Context(), before, true); !errors.Is(err, ErrUnhealthy) && !errors.Is(err, ErrUnknown) {
		t.Errorf("the gate: %v, want a verdict", err)
	}
}
