package ctl

import clientv3 "go.etcd.io/etcd/client/v3"

func errPrefixAndFromKey() error {
	return badArgs("`--prefix` and `--from-key` cannot be set at the same time, choose one")
}

func errRangeAndPrefix() error {
	return badArgs("too many arguments, only accept one argument when `--prefix` or `--from-key` is set")
}

// keyRange returns the key and the options for the range that the arguments and
// flags of get and del select. No key means the first one there is.
func keyRange(args []string, prefix, fromKey bool) (string, []clientv3.OpOption) {
	key := args[0]
	switch {
	case len(args) > 1:
		return key, []clientv3.OpOption{clientv3.WithRange(args[1])}
	case key == "" && (prefix || fromKey):
		return "\x00", []clientv3.OpOption{clientv3.WithFromKey()}
	case prefix:
		return key, []clientv3.OpOption{clientv3.WithPrefix()}
	case fromKey:
		return key, []clientv3.OpOption{clientv3.WithFromKey()}
	}
	return key, nil
}

// isSerializable reads the value of --consistency.
func isSerializable(consistency string) (bool, error) {
	switch consistency {
	case "s":
		return true, nil
	case "l":
		return false, nil
	}
	return false, code(exitBadFeature, "unknown consistency flag %q", consistency)
}
