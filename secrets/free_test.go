package secrets_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/secrets"
)

// secretInClear is a Secret as the API server stores it in protobuf, with a
// marker in its data.
func secretInClear(namespace, name string, size int) string {
	field := func(b []byte, num protowire.Number, content string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), content)
	}
	meta := field(field(nil, 1, name), 3, namespace)
	data := field(field(nil, 1, "token"), 2, marker(name)+strings.Repeat("v", size))
	object := field(field(nil, 1, string(meta)), 2, string(data))
	kind := field(field(nil, 1, "v1"), 2, "Secret")
	return "k8s\x00" + string(field(field(nil, 1, string(kind)), 2, string(object)))
}

func marker(name string) string { return "PLAINTEXT-MARKER-" + name + "-" }

// What the bytes of the file still show in free pages is found by name, and
// the same for the log. The values are of all sizes, so that some have pages of
// their own, and pages are overwritten in part.
func TestFreePagesAgainstAByteSearch(t *testing.T) {
	c := newCluster(t)
	const n = 120
	name := func(i int) string { return fmt.Sprintf("s-%03d", i) }
	for i := range n {
		c.put("/registry/secrets/ns/"+name(i), secretInClear("ns", name(i), i*i%9000))
	}
	for i := range n {
		c.put("/registry/secrets/ns/"+name(i), encrypted+strings.Repeat("x", i%700/16*16))
	}
	c.compact()
	for i := range n / 2 { // overwrites some of what compaction freed
		c.put("/registry/configmaps/ns/app", "k8s\x00"+strings.Repeat("x", i*50))
	}
	c.compact()
	etcdtest.Until(t, "the compaction to reach the file", func(context.Context) bool {
		return strings.HasPrefix(counted(c.dataDir()), "live 0 history 0")
	})
	c.Members[0].Stop()
	r := c.dataDir()
	for _, tc := range []struct {
		place secrets.Place
		file  string
		least int
	}{
		{secrets.Free, "snap/db", 1},
		{secrets.WAL, "wal/0000000000000000-0000000000000000.wal", n},
	} {
		raw, err := os.ReadFile(filepath.Join(c.Members[0].DataDir(), "member", tc.file))
		if err != nil {
			t.Fatal(err)
		}
		byScan, byBytes := map[string]bool{}, 0
		for _, f := range r.Findings {
			if f.Place == tc.place && f.State == secrets.Plain {
				byScan[f.Name] = true
			}
		}
		for i := range n {
			value := secretInClear("ns", name(i), i*i%9000)
			// From the value's beginning on: a marker whose page was torn off
			// from what names it is what makes the findings a lower bound.
			if !bytes.Contains(raw, []byte(value[:strings.Index(value, marker(name(i)))+len(marker(name(i)))])) {
				continue
			}
			byBytes++
			if !byScan[name(i)] {
				t.Errorf("%s: the bytes of %s are there, and the scan does not say so", tc.place, name(i))
			}
		}
		if byBytes < tc.least {
			t.Errorf("%s: the bytes of only %d are there, want %d at least", tc.place, byBytes, tc.least)
		}
		t.Logf("%s: %d by bytes, %d by the scan", tc.place, byBytes, len(byScan))
	}
}
