package commands

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/freespace"
)

// bindSpace defines the flags that tell the free space beside databases.
func bindSpace(f *pflag.FlagSet, diskFree, dataDirs *[]string) {
	f.StringSliceVar(diskFree, "disk-free", nil, "NAME=BYTES free beside a member's database, where it is not on this host")
	f.StringSliceVar(dataDirs, "data-dir", nil, "NAME=DIR of a member on this host, to look at its free space")
}

// freeSpace returns the free bytes by member name that the flags tell.
func freeSpace(diskFree, dataDirs []string) (map[string]int64, error) {
	free := map[string]int64{}
	for _, pair := range diskFree {
		name, size, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, cli.Usagef("--disk-free %q: NAME=BYTES is wanted", pair)
		}
		n, err := parseBytes(size)
		if err != nil {
			return nil, cli.Usagef("--disk-free %s: %w", name, err)
		}
		free[name] = n
	}
	for _, pair := range dataDirs {
		name, dir, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, cli.Usagef("--data-dir %q: NAME=DIR is wanted", pair)
		}
		n, err := freespace.Of(dir)
		if err != nil {
			return nil, cli.Usagef("--data-dir %s: %w", name, err)
		}
		free[name] = int64(n)
	}
	return free, nil
}

// addLocalSpace adds the free space beside the database of this node's member,
// where discovery found one.
func addLocalSpace(a *app.App, free map[string]int64) {
	found := a.Global.Found
	if found.DataDir == "" {
		return
	}
	if n, err := freespace.Of(found.DataDir); err == nil {
		free[found.Endpoints[0]] = int64(n)
	}
}

// parseBytes reads a size as 100MiB or 1073741824.
func parseBytes(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is no size: 100MiB and 1073741824 are", text)
	}
	return int64(n), nil
}
