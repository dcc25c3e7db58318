package health

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAnAlarmHasItsMemberInHexadecimal(t *testing.T) {
	b, err := json.Marshal(Status{Alarms: []Alarm{{"NOSPACE", 0xd244d4dcee365e75}}})
	want := `"alarms":[{"kind":"NOSPACE","memberID":15151469091735625333,"memberIDHex":"d244d4dcee365e75"}]`
	if err != nil || !strings.Contains(string(b), want) {
		t.Errorf("got %v, %s; want %s in it", err, b, want)
	}
}
