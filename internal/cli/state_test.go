package cli_test

import (
	"testing"

	"github.com/etcdkit/etcdkit/internal/cli"
)

func TestStateDir(t *testing.T) {
	home := t.TempDir()
	for name, tc := range map[string]struct {
		environ []string
		want    string
	}{
		"the variable wins":               {[]string{"XDG_STATE_HOME=/s", "HOME=/h"}, "/s/etcdkit"},
		"a relative variable counts not":  {[]string{"XDG_STATE_HOME=s", "HOME=" + home}, home + "/.local/state/etcdkit"},
		"below the home":                  {[]string{"HOME=" + home}, home + "/.local/state/etcdkit"},
		"a home that does not exist":      {[]string{"HOME=" + home + "/none"}, "/var/lib/etcdkit"},
		"a service without a home":        {nil, "/var/lib/etcdkit"},
		"a container whose home is the /": {[]string{"HOME=/"}, "/var/lib/etcdkit"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&cli.Env{Environ: tc.environ}).StateDir(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
