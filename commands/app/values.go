package app

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/cli"
)

// checkValues refuses values that no flag can mean, for all native commands
// alike: a negative time or size, and a share outside of 0 to 1.
func checkValues(fs *pflag.FlagSet) (err error) {
	fs.VisitAll(func(f *pflag.Flag) {
		if err == nil {
			err = checkValue(f)
		}
	})
	return err
}

func checkValue(f *pflag.Flag) error {
	text := f.Value.String()
	switch f.Value.Type() {
	case "duration":
		if d, err := time.ParseDuration(text); err == nil && d < 0 {
			return cli.Usagef("--%s %s: a time cannot be negative", f.Name, text)
		}
	case "float64":
		share, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(share) || share < 0 || share > 1 {
			return cli.Usagef("--%s %s: want a share between 0 and 1, such as 0.5", f.Name, text)
		}
	}
	if f.Name == "command-timeout" && strings.Trim(text, "0hms.") == "" {
		return cli.Usagef("--command-timeout %s: every request would time out at once", text)
	}
	return nil
}
