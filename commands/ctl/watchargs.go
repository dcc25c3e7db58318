package ctl

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	errWatchArgs      = errors.New("bad number of arguments")
	errWatchEnv       = errors.New("bad number of arguments (found conflicting environment key)")
	errWatchSeparator = errors.New("bad number of arguments (found separator --, but no commands)")
	errWatchPrefix    = errors.New("`range_end` and `--prefix` are mutually exclusive")
)

type watchOptions struct {
	interactive, prefix, prevKV, progress bool
	rev                                   int64
}

func (o *watchOptions) bind(fs *pflag.FlagSet) {
	fs.BoolVarP(&o.interactive, "interactive", "i", false, "Interactive mode")
	fs.BoolVar(&o.prefix, "prefix", false, "Watch on a prefix if prefix is set")
	fs.Int64Var(&o.rev, "rev", 0, "Revision to start watching")
	fs.BoolVar(&o.prevKV, "prev-kv", false, "get the previous key-value pair before the event happens")
	fs.BoolVar(&o.progress, "progress-notify", false, "get periodic watch progress notification from server")
}

// watchTarget is what to watch, and what to run for each event.
type watchTarget struct {
	keys []string // the key, and the end of a range
	exec []string
}

// watchLine is the arguments of a watch, from the command line or from a line of
// its interactive form.
type watchLine struct {
	before, after    []string // of the separator "--"
	separator        bool
	envKey, envRange string
	// strict is the command line's: there, a key in the environment beside one
	// before the separator is a conflict.
	strict bool
	// upstream makes the command's first word end the keys wherever it stands
	// last, even inside of the command.
	upstream bool
}

// target finds out what the arguments mean.
func (l watchLine) target() (watchTarget, error) {
	switch {
	case l.separator && len(l.after) == 0:
		return watchTarget{}, errWatchSeparator
	case l.envKey != "" && len(l.before) > 0 && (l.strict || !l.separator):
		return watchTarget{}, errWatchEnv
	}
	keys := slices.Clone(l.before)
	if l.envKey != "" {
		keys = slices.Insert(keys, 0, l.envKey)
		if l.envRange != "" {
			keys = slices.Insert(keys, 1, l.envRange)
		}
	}
	if !l.separator {
		return watchTarget{keys: keys}, nil
	}
	if l.upstream {
		all := append(keys, l.after...)
		last := len(all) - 1
		for all[last] != l.after[0] {
			last--
		}
		keys = all[:last]
	}
	return watchTarget{keys: keys, exec: l.after}, nil
}

// parseWatchLine reads the words after "watch" in a line of the interactive form.
func parseWatchLine(words []string, envKey, envRange string, upstream bool) (watchTarget, watchOptions, error) {
	var opts watchOptions
	fs := pflag.NewFlagSet("watch", pflag.ContinueOnError)
	fs.Usage = func() {}
	opts.bind(fs)
	line := watchLine{envKey: envKey, envRange: envRange, upstream: upstream}
	if slices.Index(words, "--") == len(words)-1 && len(words) > 0 {
		return watchTarget{}, opts, errWatchSeparator
	}
	if err := fs.Parse(words); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			err = errors.New(err.Error()) // cobra would show the help of the whole command
		}
		return watchTarget{}, opts, err
	}
	line.before = fs.Args()
	if dash := fs.ArgsLenAtDash(); dash >= 0 {
		line.separator = true
		line.before, line.after = fs.Args()[:dash], fs.Args()[dash:]
	}
	target, err := line.target()
	if err == nil && len(target.keys) == 0 && !line.separator {
		err = errWatchArgs
	}
	return target, opts, err
}

// options returns the key to watch and how.
func (o *watchOptions) options(t *tree, keys []string) (string, []clientv3.OpOption, error) {
	if len(keys) == 0 {
		return "", nil, errWatchArgs
	}
	opts := []clientv3.OpOption{clientv3.WithRev(o.rev)}
	switch {
	case len(keys) == 2 && o.prefix:
		return "", nil, errWatchPrefix
	case len(keys) == 2:
		opts = append(opts, clientv3.WithRange(keys[1]))
	case len(keys) > 2 && !t.Dialect.IgnoresExtraArguments():
		return "", nil, errWatchArgs
	}
	if o.prefix {
		opts = append(opts, clientv3.WithPrefix())
	}
	if o.prevKV {
		opts = append(opts, clientv3.WithPrevKV())
	}
	if o.progress {
		opts = append(opts, clientv3.WithProgressNotify())
	}
	return keys[0], opts, nil
}
