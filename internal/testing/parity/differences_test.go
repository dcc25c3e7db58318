//go:build !windows

package parity_test

import "github.com/etcdkit/etcdkit/internal/testing/parity"

// wanted lists every line that may differ, each by one of the three deviations
// that docs/differences.md gives for upstream's names.
func wanted() []parity.Difference {
	return nil
}
