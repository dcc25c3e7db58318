package commands

import (
	"io"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
)

const nodeConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [{identity: {}}]
`

// kubeadmNode is a node whose API server was told where its configuration is.
func kubeadmNode(config string) fstest.MapFS {
	root := fstest.MapFS{
		"etc/kubernetes/pki/etcd/ca.crt": {}, "etc/kubernetes/pki/etcd/healthcheck-client.crt": {}, "etc/kubernetes/pki/etcd/healthcheck-client.key": {},
		"var/lib/etcd/member/snap/db": {},
		"etc/kubernetes/manifests/kube-apiserver.yaml": {Data: []byte(
			"spec: {containers: [{name: kube-apiserver, command: [kube-apiserver, --encryption-provider-config=/etc/kubernetes/enc.yaml, --etcd-prefix=kube]}]}")},
	}
	if config != "" {
		root["etc/kubernetes/enc.yaml"] = &fstest.MapFile{Data: []byte(config)}
	}
	return root
}

func TestTheConfigurationOfThisNodeIsTaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source, discover string
		root             fstest.MapFS
		found, bad       bool
	}{
		"for the live cluster":                 {"", "auto", kubeadmNode(nodeConfig), true, false},
		"for the data directory":               {"/var/lib/etcd/", "auto", kubeadmNode(nodeConfig), true, false},
		"not for another directory":            {"/mnt/old", "auto", kubeadmNode(nodeConfig), false, false},
		"not for a file":                       {"backup.db", "auto", kubeadmNode(nodeConfig), false, false},
		"not when discovery is off":            {"/var/lib/etcd", "none", kubeadmNode(nodeConfig), false, false},
		"nothing when it cannot be read":       {"", "auto", kubeadmNode(""), false, false},
		"a usage error when it is broken":      {"", "auto", kubeadmNode("kind: x"), false, true},
		"nothing on a machine that is no node": {"", "auto", fstest.MapFS{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := app.New("etcdkit", cli.Native, &cli.Env{Out: io.Discard, Err: io.Discard})
			root := newRoot(a, nil)
			if err := root.ParseFlags(nil); err != nil {
				t.Fatal(err)
			}
			a.Global.Root, a.Global.Discover = tc.root, tc.discover
			opts, _, err := (&secretsFlags{failOn: []string{"plain"}}).options(a, tc.source)
			if (opts.Config != nil) != tc.found || (err != nil) != tc.bad {
				t.Errorf("got %v, %v; want found %v, bad %v", opts.Config, err, tc.found, tc.bad)
			}
			if tc.found && !slices.Equal(opts.Known, []string{"/kube"}) || !tc.found && tc.source != "" && opts.Known != nil {
				t.Errorf("known prefixes %q", opts.Known)
			}
		})
	}
}

func TestAFolderOfBackupsIsToldFromADataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if isRepositoryDir(dir) {
		t.Error("an empty folder was taken for a repository")
	}
	if err := os.WriteFile(dir+"/x.json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !isRepositoryDir(dir) {
		t.Error("a folder with a manifest was not taken for a repository")
	}
	if err := os.Mkdir(dir+"/member", 0o700); err != nil {
		t.Fatal(err)
	}
	if isRepositoryDir(dir) {
		t.Error("a data directory was taken for a repository")
	}
}
