package config

import (
	"strings"
	"testing"
)

func TestSecretsOfACommandLine(t *testing.T) {
	for name, tc := range map[string]struct{ line, hidden string }{
		"a password":                    {"etcdkit --password hunter2 get a", "etcdkit --password xxxxxxx get a"},
		"joined to its flag":            {"etcdkit get a --password=hunter2", "etcdkit get a --password=xxxxxxx"},
		"a user with a password":        {"etcdkit --user root:hunter2 get a", "etcdkit --user root:xxxxxxx get a"},
		"a user alone":                  {"etcdkit --user root get a", "etcdkit --user root get a"},
		"a token":                       {"etcdkit --auth-jwt-token=abc get a", "etcdkit --auth-jwt-token=xxx get a"},
		"of a new user":                 {"etcdkit user add bob:hunter2", "etcdkit user add bob:xxxxxxx"},
		"of a new user, abbreviated":    {"etcdctl us ad bob:hunter2", "etcdctl us ad bob:xxxxxxx"},
		"of a new user, a flag between": {"etcdkit user add --endpoints http://h:1 bob:hunter2", "etcdkit user add --endpoints http:xxxxx bob:xxxxxxx"},
		"a flag between the words":      {"etcdkit user --endpoints h add --hex bob:hunter2", "etcdkit user --endpoints h add --hex bob:xxxxxxx"},
		"of a new user, after --":       {"etcdkit user add -- bob:hunter2", "etcdkit user add -- bob:xxxxxxx"},
		"of a new user, by flag":        {"etcdctl user add bob --new-user-password hunter2", "etcdctl user add bob --new-user-password xxxxxxx"},
		"the destination of a mirror":   {"etcdctl make-mirror --dest-user=u:p --dest-password=q b", "etcdctl make-mirror --dest-user=u:x --dest-password=x b"},
		"a value that looks like one":   {"etcdctl put a -- --password hunter2", "etcdctl put a -- --password hunter2"},
		"a file's name is no secret":    {"etcdkit --password-file /run/pw get a", "etcdkit --password-file /run/pw get a"},
		"a flag without its value":      {"etcdkit get a --password", "etcdkit get a --password"},
		"a URL that is a secret":        {"etcdkit snapshot save x/ --ping-url https://hc/uuid", "etcdkit snapshot save x/ --ping-url xxxxxxxxxxxxxxx"},
		"a proxy":                       {"etcdkit snapshot list x/ --s3-proxy=http://u:p@h", "etcdkit snapshot list x/ --s3-proxy=xxxxxxxxxxxx"},
		"no proxy":                      {"etcdkit snapshot list x/ --s3-proxy none", "etcdkit snapshot list x/ --s3-proxy none"},
		"where a URL stands":            {"etcdkit snapshot save x/ --ping-url env:PING", "etcdkit snapshot save x/ --ping-url env:PING"},
		"an endpoint with a colon too":  {"etcdctl put a b:c", "etcdctl put a b:c"},
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(tc.line)
			for _, s := range secrets(args) {
				args[s.arg] = args[s.arg][:s.from] + strings.Repeat("x", len(args[s.arg])-s.from)
			}
			if got := strings.Join(args, " "); got != tc.hidden {
				t.Errorf("got %q, want %q", got, tc.hidden)
			}
		})
	}
}
