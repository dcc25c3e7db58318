package etcd_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/etcdkit/etcdkit/internal/etcd"
)

const etcdManifest = `apiVersion: v1
kind: Pod
metadata: {name: etcd, namespace: kube-system}
spec:
  containers:
  - command:
    - etcd
    - --advertise-client-urls=https://10.0.0.5:2379
    - --data-dir=/mnt/etcd
    - --listen-client-urls=https://127.0.0.1:2379,https://10.0.0.5:2379
    name: etcd
`

const apiServerManifest = `apiVersion: v1
kind: Pod
spec:
  containers:
  - command:
    - kube-apiserver
    - --etcd-prefix=kube/
    - --encryption-provider-config
    - /etc/kubernetes/enc.yaml
    - --anonymous-auth=false
    name: kube-apiserver
`

const kubesprayEnv = `# Environment file for etcd
ETCD_DATA_DIR=/var/lib/etcd
ETCD_ADVERTISE_CLIENT_URLS=https://10.0.0.5:2379
ETCD_LISTEN_CLIENT_URLS=https://10.0.0.5:2379,https://127.0.0.1:2379
ETCD_TRUSTED_CA_FILE=/etc/ssl/etcd/ssl/ca.pem
ETCD_CERT_FILE=/etc/ssl/etcd/ssl/member-n1.pem
ETCD_KEY_FILE=/etc/ssl/etcd/ssl/member-n1-key.pem
# CLI settings
ETCDCTL_ENDPOINTS=https://127.0.0.1:2379
ETCDCTL_CACERT=/etc/ssl/etcd/ssl/ca.pem
ETCDCTL_CERT="/etc/ssl/etcd/ssl/admin-n1.pem"
export ETCDCTL_KEY=/etc/ssl/etcd/ssl/admin-n1-key.pem
`

// node is a node's tree: files by name, empty unless their text is given.
func node(files ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	for _, f := range files {
		name, text, _ := strings.Cut(f, "\n")
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func TestDiscover(t *testing.T) {
	const local = "https://127.0.0.1:2379"
	for name, tc := range map[string]struct {
		root fs.FS
		want etcd.Found
	}{
		"kubeadm, refined by its manifests": {
			node("etc/kubernetes/pki/etcd/ca.crt", "etc/kubernetes/pki/etcd/healthcheck-client.crt", "etc/kubernetes/pki/etcd/healthcheck-client.key",
				"etc/kubernetes/manifests/etcd.yaml\n"+etcdManifest, "etc/kubernetes/manifests/kube-apiserver.yaml\n"+apiServerManifest),
			etcd.Found{
				Name: "kubeadm", Endpoints: []string{local}, DataDir: "/mnt/etcd", KeyPrefixes: []string{"/kube"}, EncryptionConfig: "/etc/kubernetes/enc.yaml",
				TLS: etcd.TLS{CACert: "/etc/kubernetes/pki/etcd/ca.crt", Cert: "/etc/kubernetes/pki/etcd/healthcheck-client.crt", Key: "/etc/kubernetes/pki/etcd/healthcheck-client.key"},
			},
		},
		"kubeadm without the health check's certificate": {
			node("etc/kubernetes/pki/etcd/ca.crt", "etc/kubernetes/pki/etcd/server.crt", "etc/kubernetes/pki/etcd/server.key", "var/lib/etcd/member/snap/db"),
			etcd.Found{
				Name: "kubeadm", Endpoints: []string{local}, DataDir: "/var/lib/etcd",
				TLS: etcd.TLS{CACert: "/etc/kubernetes/pki/etcd/ca.crt", Cert: "/etc/kubernetes/pki/etcd/server.crt", Key: "/etc/kubernetes/pki/etcd/server.key"},
			},
		},
		"minikube": {
			node("var/lib/minikube/certs/etcd/ca.crt", "var/lib/minikube/certs/etcd/healthcheck-client.crt", "var/lib/minikube/certs/etcd/healthcheck-client.key", "var/lib/minikube/etcd/member/snap/db"),
			etcd.Found{
				Name: "minikube", Endpoints: []string{local}, DataDir: "/var/lib/minikube/etcd",
				TLS: etcd.TLS{CACert: "/var/lib/minikube/certs/etcd/ca.crt", Cert: "/var/lib/minikube/certs/etcd/healthcheck-client.crt", Key: "/var/lib/minikube/certs/etcd/healthcheck-client.key"},
			},
		},
		"k3s": {
			node("var/lib/rancher/k3s/server/tls/etcd/server-ca.crt", "var/lib/rancher/k3s/server/tls/etcd/client.crt", "var/lib/rancher/k3s/server/tls/etcd/client.key",
				"var/lib/rancher/k3s/server/db/etcd/name", "var/lib/rancher/k3s/server/cred/encryption-config.json"),
			etcd.Found{
				Name: "k3s", Endpoints: []string{local}, DataDir: "/var/lib/rancher/k3s/server/db/etcd", EncryptionConfig: "/var/lib/rancher/k3s/server/cred/encryption-config.json",
				TLS: etcd.TLS{CACert: "/var/lib/rancher/k3s/server/tls/etcd/server-ca.crt", Cert: "/var/lib/rancher/k3s/server/tls/etcd/client.crt", Key: "/var/lib/rancher/k3s/server/tls/etcd/client.key"},
			},
		},
		"rke2": {
			node("var/lib/rancher/rke2/server/tls/etcd/server-ca.crt", "var/lib/rancher/rke2/server/tls/etcd/client.crt", "var/lib/rancher/rke2/server/tls/etcd/client.key"),
			etcd.Found{
				Name: "rke2", Endpoints: []string{local},
				TLS: etcd.TLS{CACert: "/var/lib/rancher/rke2/server/tls/etcd/server-ca.crt", Cert: "/var/lib/rancher/rke2/server/tls/etcd/client.crt", Key: "/var/lib/rancher/rke2/server/tls/etcd/client.key"},
			},
		},
		"k0s": {
			node("var/lib/k0s/pki/etcd/ca.crt", "var/lib/k0s/pki/apiserver-etcd-client.crt", "var/lib/k0s/pki/apiserver-etcd-client.key", "var/lib/k0s/etcd/member/snap/db"),
			etcd.Found{
				Name: "k0s", Endpoints: []string{local}, DataDir: "/var/lib/k0s/etcd",
				TLS: etcd.TLS{CACert: "/var/lib/k0s/pki/etcd/ca.crt", Cert: "/var/lib/k0s/pki/apiserver-etcd-client.crt", Key: "/var/lib/k0s/pki/apiserver-etcd-client.key"},
			},
		},
		"kops": {
			node("etc/kubernetes/pki/kube-apiserver/etcd-ca.crt", "etc/kubernetes/pki/kube-apiserver/etcd-client.crt", "etc/kubernetes/pki/kube-apiserver/etcd-client.key",
				"etc/kubernetes/manifests/kube-apiserver.yaml\n"+apiServerManifest),
			etcd.Found{
				Name: "kops", Endpoints: []string{"https://127.0.0.1:4001"}, KeyPrefixes: []string{"/kube"}, EncryptionConfig: "/etc/kubernetes/enc.yaml",
				TLS: etcd.TLS{CACert: "/etc/kubernetes/pki/kube-apiserver/etcd-ca.crt", Cert: "/etc/kubernetes/pki/kube-apiserver/etcd-client.crt", Key: "/etc/kubernetes/pki/kube-apiserver/etcd-client.key"},
			},
		},
		"openshift": {
			node("etc/kubernetes/static-pod-resources/etcd-certs/configmaps/etcd-all-bundles/server-ca-bundle.crt",
				"etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-all-certs/etcd-peer-n1.crt",
				"etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-all-certs/etcd-peer-n1.key",
				"var/lib/etcd/member/snap/db"),
			etcd.Found{
				Name: "openshift", Endpoints: []string{"https://localhost:2379"}, DataDir: "/var/lib/etcd", KeyPrefixes: []string{"/kubernetes.io", "/openshift.io"},
				TLS: etcd.TLS{
					CACert: "/etc/kubernetes/static-pod-resources/etcd-certs/configmaps/etcd-all-bundles/server-ca-bundle.crt",
					Cert:   "/etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-all-certs/etcd-peer-n1.crt",
					Key:    "/etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-all-certs/etcd-peer-n1.key",
				},
			},
		},
		"kubespray's etcd.env": {
			node("etc/etcd.env\n"+kubesprayEnv, "etc/ssl/etcd/ssl/ca.pem", "etc/ssl/etcd/ssl/admin-n1.pem", "etc/ssl/etcd/ssl/admin-n1-key.pem"),
			etcd.Found{
				Name: "etcd.env", Endpoints: []string{local}, DataDir: "/var/lib/etcd",
				TLS: etcd.TLS{CACert: "/etc/ssl/etcd/ssl/ca.pem", Cert: "/etc/ssl/etcd/ssl/admin-n1.pem", Key: "/etc/ssl/etcd/ssl/admin-n1-key.pem"},
			},
		},
		"a package's etcd.conf, plain": {
			node("etc/etcd/etcd.conf\nETCD_DATA_DIR=\"/var/lib/etcd/default.etcd\"\nETCD_LISTEN_CLIENT_URLS=\"http://localhost:2379\"\n"),
			etcd.Found{Name: "etcd.conf", Endpoints: []string{"http://localhost:2379"}, DataDir: "/var/lib/etcd/default.etcd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, by := range []string{"", tc.want.Name} {
				got, err := etcd.Discover(tc.root, by)
				if err != nil || !reflect.DeepEqual(got, tc.want) {
					t.Errorf("Discover(%q): %v\n got %+v\nwant %+v", by, err, got, tc.want)
				}
			}
		})
	}
}

func TestDiscoverFindsNothing(t *testing.T) {
	for name, root := range map[string]fs.FS{
		"on an empty node":             node(),
		"where a key is missing":       node("etc/kubernetes/pki/etcd/ca.crt", "etc/kubernetes/pki/etcd/server.crt"),
		"in a file that sets nothing":  node("etc/default/etcd\n# ETCD_NAME=\"hostname\"\n"),
		"on a worker of a k3s cluster": node("var/lib/rancher/k3s/agent/client-ca.crt"),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := etcd.Discover(root, ""); !errors.Is(err, etcd.ErrNothingFound) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := etcd.Discover(node(), "windows"); err == nil || !strings.Contains(err.Error(), "kubeadm") {
		t.Errorf("an unknown layout: %v, want those that are known", err)
	}
}

func TestDiscoverSaysWhatItMayNotRead(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root may read anything, so the tree says no instead.
		root := denied{node("etc/kubernetes/pki/etcd/ca.crt", "etc/kubernetes/pki/etcd/server.crt", "etc/kubernetes/pki/etcd/server.key")}
		if _, err := etcd.Discover(root, ""); err == nil || !strings.Contains(err.Error(), "server.key") {
			t.Errorf("got %v, want an error about server.key", err)
		}
		return
	}
	dir := t.TempDir()
	pki := filepath.Join(dir, "etc/kubernetes/pki/etcd")
	if err := os.MkdirAll(pki, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, mode := range map[string]fs.FileMode{"ca.crt": 0o600, "server.crt": 0o600, "server.key": 0o000} {
		if err := os.WriteFile(filepath.Join(pki, file), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := etcd.Discover(os.DirFS(dir), ""); err == nil || !strings.Contains(err.Error(), "server.key") {
		t.Errorf("got %v, want an error about server.key", err)
	}
}

// denied is a tree whose private keys may not be read.
type denied struct{ fs.FS }

func (d denied) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".key") {
		if _, err := fs.Stat(d.FS, name); err == nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
	}
	return d.FS.Open(name)
}

func FuzzDiscoverFiles(f *testing.F) {
	f.Add([]byte(etcdManifest), []byte(kubesprayEnv))
	f.Add([]byte("spec: {containers: [{command: [etcd, --]}]}"), []byte("=\n\"\nA=\"\n"))
	f.Fuzz(func(t *testing.T, manifest, env []byte) {
		root := node("etc/kubernetes/pki/etcd/ca.crt", "etc/kubernetes/pki/etcd/server.crt", "etc/kubernetes/pki/etcd/server.key")
		root["etc/kubernetes/manifests/etcd.yaml"] = &fstest.MapFile{Data: manifest}
		root["etc/etcd.env"] = &fstest.MapFile{Data: env}
		for _, name := range []string{"kubeadm", "etcd.env"} {
			if found, err := etcd.Discover(root, name); err == nil && len(found.Endpoints) == 0 {
				t.Errorf("%s: found no endpoint and no error: %+v", name, found)
			}
		}
	})
}
