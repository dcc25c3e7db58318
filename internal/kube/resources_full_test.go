//go:build full

package kube

import (
	"os/exec"
	"testing"
)

// The table is what the generator makes of the pinned Kubernetes.
func TestTheTableOfResourcesIsUpToDate(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "-check", "../resources_generated.go")
	cmd.Dir = "gen"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
