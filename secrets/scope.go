package secrets

import (
	"bytes"
	"slices"

	"github.com/etcdkit/etcdkit/internal/kube"
)

// secretsResource is what is looked at in any case.
func secretsResource() kube.GroupResource { return kube.GroupResource{Resource: "secrets"} }

// scope is which etcd keys are looked at.
type scope struct {
	config   *kube.EncryptionConfig
	prefixes []string
	dirs     [][]byte // beginnings of the keys that are looked at
	named    []namedDir
	wild     bool // the directories are whole prefixes
	all      bool // every object is looked at, if only for credentials
}

// namedDir is where the objects of one resource are stored.
type namedDir struct {
	dir, prefix string
	resource    kube.GroupResource
}

func newScope(prefixes []string, opts Options) *scope {
	config := opts.Config
	s := &scope{config: config, prefixes: slices.Clone(prefixes), all: opts.Detect}
	// A control plane may lie below another's prefix.
	slices.SortStableFunc(s.prefixes, func(a, b string) int { return len(b) - len(a) })
	resources := []kube.GroupResource{secretsResource()}
	if config != nil {
		resources = append(resources, config.Resources()...)
	}
	s.wild = s.all || slices.ContainsFunc(resources, func(gr kube.GroupResource) bool { return gr.Resource == "*" })
	for _, prefix := range prefixes {
		if s.wild {
			s.dirs = append(s.dirs, []byte(prefix+"/"))
		}
		for _, gr := range resources {
			if gr.Resource == "*" {
				continue
			}
			for _, dir := range kube.StoragePrefixes(prefix, gr) {
				s.dirs = append(s.dirs, []byte(dir))
				s.named = append(s.named, namedDir{dir, prefix, gr})
			}
		}
	}
	s.dirs = outermost(s.dirs)
	return s
}

// outermost drops what lies inside another directory, so that nothing is read
// twice.
func outermost(dirs [][]byte) [][]byte {
	slices.SortFunc(dirs, bytes.Compare)
	kept := dirs[:0]
	for _, dir := range dirs {
		if len(kept) == 0 || !bytes.HasPrefix(dir, kept[len(kept)-1]) {
			kept = append(kept, dir)
		}
	}
	return kept
}

// match takes apart an etcd key if it is looked at.
func (s *scope) match(key []byte) (kube.Key, bool) {
	if !s.inDir(key) {
		return kube.Key{}, false
	}
	for _, prefix := range s.prefixes {
		k, ok := kube.ParseKey(prefix, key)
		if !ok {
			continue
		}
		return k, s.all || s.judges(kube.GroupResource{Group: k.Group, Resource: k.Resource})
	}
	return s.oddKey(key)
}

// oddKey takes apart a key that no API server writes, below a resource that is
// looked at: its value counts all the same.
func (s *scope) oddKey(key []byte) (kube.Key, bool) {
	for _, d := range s.named {
		if name, ok := bytes.CutPrefix(key, []byte(d.dir)); ok {
			return kube.Key{Prefix: d.prefix, Group: d.resource.Group, Resource: d.resource.Resource, Name: string(name)}, true
		}
	}
	return kube.Key{}, false
}

// judges reports whether it is told how the objects of a resource are stored.
func (s *scope) judges(gr kube.GroupResource) bool {
	if gr == secretsResource() {
		return true
	}
	if s.config == nil || kube.Bookkeeping(gr) {
		return false
	}
	_, configured := s.config.Providers(gr)
	return configured
}

func (s *scope) inDir(key []byte) bool {
	for _, dir := range s.dirs {
		if bytes.HasPrefix(key, dir) {
			return true
		}
	}
	return false
}

// prefixOf returns the prefix that key is an object of.
func (s *scope) prefixOf(key []byte) (string, bool) {
	for _, p := range s.prefixes {
		if kube.IsBuiltInObject(p, key) {
			return p, true
		}
	}
	return "", false
}
