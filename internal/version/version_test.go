package version

import "testing"

func TestTheStampedVersionWins(t *testing.T) {
	defer func(old string) { stamped = old }(stamped)
	stamped = "v1.2.3"
	if got := String(); got != "v1.2.3" {
		t.Errorf("got %q, want v1.2.3", got)
	}
	stamped = ""
	if got := String(); got == "" {
		t.Error("a build without a stamp has no version")
	}
}
