package commands

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// clusterID is the id of a cluster as its folder in a repository is called, read
// as people write it: in either case, without leading zeros, or with 0x.
type clusterID struct{ to *string }

// bindCluster defines the flag that chooses one cluster of a repository.
func bindCluster(fs *pflag.FlagSet, to *string, usage string) {
	fs.Var(clusterID{to}, "cluster-id", usage+" (16 hex digits)")
}

func (c clusterID) Type() string { return "string" }

func (c clusterID) String() string {
	if c.to == nil {
		return ""
	}
	return *c.to
}

func (c clusterID) Set(s string) error {
	const hex, bits = 16, 64
	digits := s
	if len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X") {
		digits = s[2:]
	}
	id, err := strconv.ParseUint(digits, hex, bits)
	if err != nil {
		return fmt.Errorf("%q is no cluster id: up to 16 hexadecimal digits are", s)
	}
	*c.to = fmt.Sprintf("%016x", id)
	return nil
}
