package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Found is an etcd that a node's own files describe.
type Found struct {
	Name      string   // kubeadm, k3s, ...
	Endpoints []string // of the node's own member
	TLS       TLS      // absolute paths
	DataDir   string   // "" where no file tells

	// KeyPrefixes are where the node's API servers keep their objects, as
	// "/registry"; none where no file tells.
	KeyPrefixes []string
	// EncryptionConfig is what kube-apiserver was started with, "" where no
	// file tells.
	EncryptionConfig string
}

// ErrNothingFound means that a node has none of the layouts looked for.
var ErrNothingFound = errors.New("no etcd found on this node")

// layout is one way in which a node keeps its etcd.
type layout struct {
	name string
	find func(tree) (Found, error)
}

// layouts are the known ones. Those of one distribution come before those that
// several share.
func layouts() []layout {
	return []layout{
		{"k3s", func(t tree) (Found, error) { return t.rancher("var/lib/rancher/k3s/server") }},
		{"rke2", func(t tree) (Found, error) { return t.rancher("var/lib/rancher/rke2/server") }},
		{"k0s", tree.k0s},
		{"openshift", tree.openshift},
		{"kops", tree.kops},
		{"minikube", func(t tree) (Found, error) { return t.kubeadm("var/lib/minikube/certs/etcd", "var/lib/minikube/etcd") }},
		{"kubeadm", func(t tree) (Found, error) { return t.kubeadm("etc/kubernetes/pki/etcd", "var/lib/etcd") }},
		{"etcd.env", func(t tree) (Found, error) { return t.environment("etc/etcd.env") }},
		{"etcd.conf", func(t tree) (Found, error) { return t.environment("etc/etcd/etcd.conf") }},
		{"default", func(t tree) (Found, error) { return t.environment("etc/default/etcd") }},
	}
}

// Layouts returns the names that Discover knows.
func Layouts() []string {
	var names []string
	for _, l := range layouts() {
		names = append(names, l.name)
	}
	return names
}

// Discover looks for an etcd in the files of a node, whose root is given, by
// the layout of that name or by each that is known. The error is
// ErrNothingFound where there is none; another, where there is one whose files
// cannot be used.
func Discover(root fs.FS, name string) (Found, error) {
	known := false
	for _, l := range layouts() {
		if name != "" && name != l.name {
			continue
		}
		known = true
		found, err := l.find(tree{root})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found.Name = l.name
		if err != nil {
			return found, fmt.Errorf("discover etcd: %s: %w", l.name, err)
		}
		return found, nil
	}
	if !known {
		return Found{}, fmt.Errorf("discover etcd: no layout %q, known are %s", name, strings.Join(Layouts(), ", "))
	}
	return Found{}, ErrNothingFound
}

// tree is a node's files. Its paths have no leading slash.
type tree struct{ fs.FS }

const (
	localEndpoint = "https://127.0.0.1:2379"
	manifests     = "etc/kubernetes/manifests"
)

// readable fails where one of the files does not exist, or exists and may not
// be read, as a private key by anybody but root.
func (t tree) readable(names ...string) error {
	for _, name := range names {
		f, err := t.Open(name)
		if errors.Is(err, fs.ErrPermission) {
			return hint.With(fmt.Errorf("open /%s: %w", name, fs.ErrPermission), "run etcdkit as a user who may read it, such as root, or give --endpoints and the certificates")
		}
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// tls is the TLS of these three files, when they are all readable.
func (t tree) tls(ca, cert, key string) (TLS, error) {
	if err := t.readable(ca, cert, key); err != nil {
		return TLS{}, err
	}
	return TLS{CACert: "/" + ca, Cert: "/" + cert, Key: "/" + key}, nil
}

// firstTLS is the TLS of the first pair, named without .crt and .key, whose
// files exist.
func (t tree) firstTLS(ca string, pairs ...string) (TLS, error) {
	err := fs.ErrNotExist
	for _, pair := range pairs {
		var found TLS
		if found, err = t.tls(ca, pair+".crt", pair+".key"); !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
	}
	return TLS{}, err
}

// dir is the folder's absolute path, where it can be seen.
func (t tree) dir(name string) string {
	if info, err := fs.Stat(t, name); err == nil && info.IsDir() {
		return "/" + name
	}
	return ""
}

// file is the file's absolute path, where it can be seen.
func (t tree) file(name string) string {
	if info, err := fs.Stat(t, name); err == nil && !info.IsDir() {
		return "/" + name
	}
	return ""
}

// rancher is the layout of k3s and RKE2, which differ in their folder.
func (t tree) rancher(server string) (Found, error) {
	certs := path.Join(server, "tls/etcd")
	tls, err := t.tls(path.Join(certs, "server-ca.crt"), path.Join(certs, "client.crt"), path.Join(certs, "client.key"))
	return Found{
		Endpoints: []string{localEndpoint}, TLS: tls,
		DataDir:          t.dir(path.Join(server, "db/etcd")),
		EncryptionConfig: t.file(path.Join(server, "cred/encryption-config.json")),
	}, err
}

func (t tree) k0s() (Found, error) {
	tls, err := t.firstTLS("var/lib/k0s/pki/etcd/ca.crt", "var/lib/k0s/pki/apiserver-etcd-client", "var/lib/k0s/pki/etcd/server")
	return Found{Endpoints: []string{localEndpoint}, TLS: tls, DataDir: t.dir("var/lib/k0s/etcd")}, err
}

// kops runs etcd below etcd-manager, on a port of its own.
func (t tree) kops() (Found, error) {
	const dir = "etc/kubernetes/pki/kube-apiserver"
	tls, err := t.tls(dir+"/etcd-ca.crt", dir+"/etcd-client.crt", dir+"/etcd-client.key")
	if err != nil {
		return Found{}, err
	}
	found := Found{Endpoints: []string{"https://127.0.0.1:4001"}, TLS: tls}
	return found, t.fromAPIServer(&found)
}

// openshift keeps a certificate of every node on every node. Its own API
// server's objects lie beside those of Kubernetes'.
func (t tree) openshift() (Found, error) {
	const dir = "etc/kubernetes/static-pod-resources/etcd-certs"
	ca := dir + "/configmaps/etcd-all-bundles/server-ca-bundle.crt"
	if t.file(ca) == "" {
		ca = dir + "/configmaps/etcd-serving-ca/ca-bundle.crt"
	}
	pairs, err := fs.Glob(t, dir+"/secrets/etcd-all-certs/etcd-peer-*.crt")
	if err != nil || len(pairs) == 0 {
		return Found{}, fs.ErrNotExist
	}
	for i, pair := range pairs {
		pairs[i] = strings.TrimSuffix(pair, ".crt")
	}
	tls, err := t.firstTLS(ca, pairs...)
	return Found{
		Endpoints: []string{"https://localhost:2379"}, TLS: tls, DataDir: t.dir("var/lib/etcd"),
		KeyPrefixes: []string{"/kubernetes.io", "/openshift.io"},
	}, err
}

// kubeadm is the layout of kubeadm and minikube, which differ in their folder.
// The static pod manifests tell what was configured otherwise.
func (t tree) kubeadm(certs, dataDir string) (Found, error) {
	tls, err := t.firstTLS(path.Join(certs, "ca.crt"), path.Join(certs, "healthcheck-client"),
		path.Join(certs, "server"), path.Join(path.Dir(certs), "apiserver-etcd-client"))
	if err != nil {
		return Found{}, err
	}
	found := Found{Endpoints: []string{localEndpoint}, TLS: tls, DataDir: t.dir(dataDir)}
	if err := t.fromEtcd(&found); err != nil {
		return found, err
	}
	return found, t.fromAPIServer(&found)
}

// fromEtcd takes what etcd's static pod was started with.
func (t tree) fromEtcd(found *Found) error {
	flags, err := t.podFlags(manifests+"/etcd.yaml", "etcd")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // the manifest only refines
	}
	if err != nil {
		return err
	}
	if urls := local(flags["listen-client-urls"], flags["advertise-client-urls"]); len(urls) > 0 {
		found.Endpoints = urls
	}
	if dir := flags["data-dir"]; dir != "" {
		found.DataDir = dir
	}
	return nil
}

// fromAPIServer takes what kube-apiserver's static pod was started with.
func (t tree) fromAPIServer(found *Found) error {
	flags, err := t.podFlags(manifests+"/kube-apiserver.yaml", "kube-apiserver")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	found.EncryptionConfig = flags["encryption-provider-config"]
	if prefix := flags["etcd-prefix"]; prefix != "" {
		found.KeyPrefixes = []string{path.Join("/", prefix)} // as the API server does
	}
	return nil
}

// local picks the loopback URL among those that etcd listens on, else the
// first one that it advertises.
func local(listen, advertise string) []string {
	loopback := func(u string) bool { return strings.Contains(u, "127.0.0.1") || strings.Contains(u, "localhost") }
	urls := strings.Split(listen, ",")
	if i := slices.IndexFunc(urls, loopback); i >= 0 {
		return []string{strings.TrimSpace(urls[i])}
	}
	if first, _, _ := strings.Cut(advertise, ","); first != "" {
		return []string{strings.TrimSpace(first)}
	}
	return nil
}
