package secrets

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/google/osv-scalibr/veles"

	"github.com/etcdkit/etcdkit/internal/kube"
)

const (
	// helmRelease begins the names of the objects that hold Helm's releases.
	helmRelease = "sh.helm.release.v1."
	// gzipBase64 begins gzip data in base64, with the flags that Helm's has.
	gzipBase64 = "H4sI"
	// maxRelease bounds what a release is unpacked to.
	maxRelease = 16 << 20
)

// rule finds one kind of credential.
type rule struct {
	name  string
	finds func(value []byte) bool
	// needs are texts of which one stands in everything that the rule finds.
	// Without them it is as fast as a search for a text by itself.
	needs []string
}

// library finds what a detector of the library does.
func library(d veles.Detector) func([]byte) bool {
	return func(value []byte) bool {
		hits, _ := d.Detect(value)
		return len(hits) > 0
	}
}

// form finds what an expression matches, which is compiled when it is needed.
func form(expr string) func([]byte) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	return func(value []byte) bool { return compiled().Match(value) }
}

// detect looks for what looks like credentials and returns the names of the
// rules that found some, "" if none. What they found is forgotten at once.
func detect(rules []rule, objectName string, value []byte) string {
	found := make(map[string]bool)
	search(rules, value, found)
	if strings.HasPrefix(objectName, helmRelease) {
		search(rules, unpack(value), found)
	}
	if len(found) == 0 {
		return ""
	}
	var names []string
	for _, r := range rules {
		if found[r.name] {
			names = append(names, r.name)
			delete(found, r.name)
		}
	}
	return strings.Join(names, ",")
}

func search(rules []rule, value []byte, found map[string]bool) {
	for _, r := range rules {
		if !found[r.name] && r.mayFind(value) && r.finds(value) {
			found[r.name] = true
		}
	}
}

func (r rule) mayFind(value []byte) bool {
	for _, text := range r.needs {
		if bytes.Contains(value, []byte(text)) {
			return true
		}
	}
	return r.needs == nil
}

// unpack returns the content of a Helm release, as far as it is whole: JSON,
// packed by gzip and written in base64, which an object in JSON has in base64
// once more.
func unpack(value []byte) []byte {
	at := bytes.Index(value, []byte(gzipBase64))
	if at < 0 {
		twice := base64.StdEncoding.EncodeToString([]byte(gzipBase64))[:5] // of the next characters it has a part
		if at = bytes.Index(value, []byte(twice)); at < 0 {
			return nil
		}
		once, _ := io.ReadAll(fromBase64(value[at:])) // as far as it goes
		return unpackOnce(once)
	}
	return unpackOnce(value[at:])
}

func unpackOnce(text []byte) []byte {
	packed, err := gzip.NewReader(fromBase64(text))
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(io.LimitReader(packed, maxRelease)) // as far as it goes
	return content
}

// fromBase64 decodes what is in base64 at the beginning of text.
func fromBase64(text []byte) io.Reader {
	end := bytes.IndexFunc(text, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '/'
	})
	if end < 0 {
		end = len(text)
	}
	return base64.NewDecoder(base64.RawStdEncoding, bytes.NewReader(text[:end]))
}

// searched reports whether objects of a resource are looked into. Those left
// out are many and hold nothing that people write.
func searched(gr kube.GroupResource, name string) bool {
	switch gr.String() {
	case "secrets": // credentials are what they are for
		return strings.HasPrefix(name, helmRelease)
	case "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io", "endpoints", "masterleases", "ranges":
		return false
	}
	return true
}
