package commands

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/snapshot"
)

// keepFlags are the flags of a retention policy.
type keepFlags struct {
	snapshot.Policy
	within  longDuration
	maxSize byteSize
}

func (k *keepFlags) bind(fs *pflag.FlagSet) {
	fs.IntVar(&k.Last, "keep-last", 0, "keep the newest N backups")
	fs.IntVar(&k.Hourly, "keep-hourly", 0, "keep the newest backup of each of the last N hours that have one")
	fs.IntVar(&k.Daily, "keep-daily", 0, "the same by days")
	fs.IntVar(&k.Weekly, "keep-weekly", 0, "the same by weeks")
	fs.IntVar(&k.Monthly, "keep-monthly", 0, "the same by months")
	fs.IntVar(&k.Yearly, "keep-yearly", 0, "the same by years")
	fs.Var(&k.within, "keep-within", "keep all backups younger than this, such as 36h or 14d")
	fs.Var(&k.maxSize, "max-size", "of what is kept, drop the oldest beyond this size, such as 50GiB")
	fs.BoolVar(&k.ByMember, "keep-by-member", false, "count the backups of each member apart")
}

func (k *keepFlags) policy() snapshot.Policy {
	p := k.Policy
	p.Within, p.MaxSize = time.Duration(k.within), int64(k.maxSize)
	return p
}

// longDuration is a duration that may be in days and weeks.
type longDuration time.Duration

func (d *longDuration) Type() string { return "duration" }

func (d *longDuration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *longDuration) Set(s string) error {
	const day = 24 * time.Hour
	for suffix, unit := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if number, ok := strings.CutSuffix(s, suffix); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil || n < 0 || n > 36500 {
				return fmt.Errorf("%q is no duration such as 36h, 14d or 8w", s)
			}
			*d = longDuration(n * float64(unit))
			return nil
		}
	}
	parsed, err := time.ParseDuration(s)
	if err != nil || parsed < 0 {
		return fmt.Errorf("%q is no duration such as 36h, 14d or 8w", s)
	}
	*d = longDuration(parsed)
	return nil
}
