package secrets_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/secrets"
)

func place(r *secrets.Report, p secrets.Place) secrets.Coverage {
	for _, c := range r.Places {
		if c.Place == p {
			return c
		}
	}
	return secrets.Coverage{Place: p, Reason: "not looked at"}
}

// frameOf returns where the frame of the log begins that holds the bytes at at.
func frameOf(t *testing.T, data []byte, at int) int {
	t.Helper()
	for from := 0; from < at; {
		length := binary.LittleEndian.Uint64(data[from:])
		size := int(length & (1<<56 - 1))
		if length>>63 == 1 {
			size += int(length >> 56 & 7)
		}
		if from+8+size > at {
			return from
		}
		from += 8 + size
	}
	t.Fatal("no frame there")
	return 0
}

// A frame that makes no sense is not the end of a log when records follow it.
func TestWhatFollowsABrokenFrameIsRead(t *testing.T) {
	c := newCluster(t)
	for range 5 {
		c.put("/registry/secrets/ns/b", encrypted)
	}
	c.put("/registry/secrets/ns/a", inClear)
	c.put("/registry/secrets/ns/a", encrypted)
	c.Members[0].Stop()
	dir := copyDir(t, c.Members[0].DataDir())
	path, whole, _ := segment(t, dir)
	frame := frameOf(t, whole, bytes.Index(whole, []byte("HIDDEN-MARKER")))
	last := frameOf(t, whole, bytes.LastIndex(whole, []byte("HIDDEN-MARKER")))
	for name, tc := range map[string]struct {
		at     int
		broken []byte
		want   string
	}{
		"a length of nothing":         {frame, make([]byte, 8), "wal 1"},
		"a length of too much":        {frame, bytes.Repeat([]byte{0xff}, 8), "wal 1"},
		"a length that covers others": {frame, binary.LittleEndian.AppendUint64(nil, 4096), "wal 1"},
		"a sector of zeroes":          {frame &^ 7, make([]byte, 512), "wal"},
		"a wrong checksum":            {frame + 12, []byte{0xaa}, "wal 1"},
		"garbage where the end is":    {last, bytes.Repeat([]byte{0xff}, 100), "wal 1"},
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.Clone(whole)
			copy(data[tc.at:], tc.broken)
			writeFile(t, path, data)
			r := scanDir(t, dir)
			if got := outsideFree(r); !strings.Contains(got, tc.want) || place(r, secrets.WAL).Read || r.DamageCount == 0 {
				t.Errorf("got %s, want %s; places %+v, damage %v", got, tc.want, r.Places, r.Damage)
			}
		})
	}
}

// What lies beside the files of a member is scanned for what it is, and named
// otherwise.
func TestFilesBesideTheMembersAreScanned(t *testing.T) {
	dir := stopped(t, 0)
	if got := outsideFree(scanDir(t, dir)); got != "live 1 history 0 wal 1" {
		t.Fatalf("got %s", got)
	}
	old := os.DirFS(filepath.Join(dir, "member"))
	moved := filepath.Join(dir, "member.old-20260101T000000Z")
	for _, to := range []string{moved, filepath.Join(dir, ".etcdkit-restore-1234", "member")} {
		if err := os.CopyFS(to, old); err != nil {
			t.Fatal(err)
		}
	}
	copied := mixed(t).bytes(t)
	writeFile(t, filepath.Join(dir, "member", "snap", "db.bak"), copied)
	writeFile(t, filepath.Join(dir, "member", "notes"), []byte("nothing here"))
	writeFile(t, filepath.Join(dir, "member", "dump"), append([]byte("junk"), inClear...))
	outside := t.TempDir()
	writeFile(t, filepath.Join(outside, "other.db"), copied)
	if err := os.Symlink(filepath.Join(outside, "other.db"), filepath.Join(dir, "link.db")); err != nil {
		t.Fatal(err)
	}
	r := scanDir(t, dir)
	byFile := make(map[string]int)
	for _, f := range r.Findings {
		if f.Place == secrets.Other && f.State == secrets.Plain {
			byFile[strings.Split(f.File, string(filepath.Separator))[0]]++
		}
	}
	// Of each old member its database and its log, 14 of each copy, and one that stands alone.
	for file, want := range map[string]int{filepath.Base(moved): 2, ".etcdkit-restore-1234": 2, "link.db": 14, "member": 15} {
		if byFile[file] < want { // free pages have more, depending on how commits fell
			t.Errorf("%s: got %d, want %d", file, byFile[file], want)
		}
	}
	var named []string
	for _, f := range r.NotScanned {
		named = append(named, f.File)
	}
	if want := []string{"member/dump", "member/notes"}; !slices.Equal(named, want) || !place(r, secrets.Other).Read {
		t.Errorf("not scanned %v, want %v; places %+v", named, want, r.Places)
	}
	for name, make := range map[string]func(path string) error{
		"a packed file":            func(path string) error { return os.WriteFile(path, []byte("\x28\xb5\x2f\xfdxxxxxxxx"), 0o600) },
		"a link to another folder": func(path string) error { return os.Symlink(outside, path) },
		"a damaged database":       func(path string) error { return os.WriteFile(path, copied[:40*4096], 0o600) },
	} {
		path := filepath.Join(dir, "member", "snap", "db.tmp.x")
		if name != "a damaged database" {
			path = filepath.Join(dir, "extra")
		}
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		r := scanDir(t, dir)
		if place(r, secrets.Other).Read && place(r, secrets.WAL).Read {
			t.Errorf("%s: everything counts as read: %+v", name, r.Places)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A copy of which the value was overwritten does not hide a whole one, a dead
// record's length hides nothing, and the file is searched to its last byte.
func TestFreePagesHideNothing(t *testing.T) {
	whole := mixed(t).bytes(t)
	whole = whole[:len(whole)-32]
	key := []byte("/registry/secrets/ns/dead")
	rec := func(value string, size int) []byte {
		b := append([]byte{0x0a, byte(len(key))}, key...)
		b = append(b, 0x10, 5, 0x18, 6, 0x20, 2, 0x2a)
		return append(binary.AppendUvarint(b, uint64(size)), value...)
	}
	page := func(content ...[]byte) []byte {
		return append(bytes.Join(content, []byte("\x00\x00")), make([]byte, 4096)...)[:4096]
	}
	for name, tc := range map[string]struct {
		pages []byte
		want  string
	}{
		"an overwritten copy first": {
			slices.Concat(page(rec("\x07\x07\x07 overwritten", 15)), page(rec(inClear, len(inClear)))), "secrets free plain 1\n",
		},
		"a length that covers a Secret without key": {page(rec(encrypted, 23+16*200), []byte(inClear)), "secrets free plain 1\n"},
		"a partial last page":                       {rec(inClear, len(inClear)), "secrets free plain 1\n"},
		"a record with broken numbers":              {page(bytes.Replace(rec(inClear, len(inClear)), []byte{0x20, 2}, []byte{0x20, 0}, 1)), "secrets free plain 1\n"},
		"overwritten alone":                         {page(rec("\x07\x07\x07 overwritten", 15)), "secrets free unknown 1\n"},
	} {
		r := scanBytes(t, slices.Concat(whole, tc.pages))
		got := strings.Replace(summary(r, secrets.Free), "secrets free encrypted aesgcm gcm-prod 3\n", "", 1)
		got = strings.Replace(got, "secrets free encrypted aescbc key1 1\n", "", 1)
		if got != tc.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, tc.want)
		}
	}
}

// changing is a database file whose member commits whenever a page is read,
// until it has done so often enough, and meanwhile uses all pages for something
// else.
type changing struct {
	file    []byte
	settles int

	mu      sync.Mutex // a scan reads pages side by side
	commits int
}

func (c *changing) Size() (int64, error) { return int64(len(c.file)), nil }

func (c *changing) ReadAt(b []byte, at int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := bytes.Clone(c.file)
	for page := 0; page < 2*4096; page += 4096 { // both meta pages, with the number of the commit
		meta := m[page+16:]
		binary.LittleEndian.PutUint64(meta[48:], 1000+uint64(c.commits))
		sum := fnv.New64a()
		sum.Write(meta[:56])
		binary.LittleEndian.PutUint64(meta[56:], sum.Sum64())
	}
	if at >= 2*4096 && c.commits < c.settles {
		c.commits++
		for page := 2 * 4096; page+4096 <= len(m); page += 4096 {
			copy(m[page:], bytes.Repeat([]byte{0xa5}, 64))
		}
	}
	return bytes.NewReader(m).ReadAt(b, at)
}

func TestAFileThatChangesIsNotCalledCorrupt(t *testing.T) {
	whole := mixed(t).bytes(t)
	newest := whole[:4096]
	if binary.LittleEndian.Uint64(whole[4096+64:]) > binary.LittleEndian.Uint64(whole[64:]) {
		newest = whole[4096 : 2*4096]
	}
	copy(whole[16:80], newest[16:80])
	copy(whole[4096+16:4096+80], newest[16:80])
	for _, settles := range []int{0, 3, 1 << 30} {
		r, err := secrets.ScanFile(t.Context(), &changing{file: whole, settles: settles}, secrets.Options{Prefixes: []string{"/registry"}})
		switch {
		case settles < 1<<30 && (err != nil || r.DamageCount > 0 || !place(r, secrets.Live).Read || !strings.Contains(counted(r), "live 11 history 3")):
			t.Errorf("settles after %d commits: %v, got %+v", settles, err, r)
		case settles == 1<<30 && err == nil && (r.DamageCount > 0 || place(r, secrets.Live).Read || !r.ChangedWhileReading):
			t.Errorf("never settles: damage %v, places %+v", r.Damage, r.Places)
		case settles == 1<<30 && err != nil && (!errors.Is(err, secrets.ErrIncomplete) || !strings.Contains(err.Error(), "changed the file") || strings.Contains(err.Error(), "page")):
			t.Errorf("never settles: %v", err)
		}
	}
}

func TestAdviceKeepsItsOrder(t *testing.T) {
	c := newCluster(t)
	c.put("/registry/secrets/ns/a", inClear)
	config := func(text string) *kube.EncryptionConfig {
		parsed, err := kube.ParseEncryptionConfig([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	const key = "aescbc: {keys: [{name: k, secret: AAECAwQFBgcICQoLDA0ODw==}]}"
	encrypt := []string{"write a configuration", "restart all", "rewrite", "secrets scan", "compact", "turn over", "new backup", "only when that scan", "treat"}
	for name, tc := range map[string]struct {
		config *kube.EncryptionConfig
		want   []string
	}{
		"nothing encrypts":     {nil, encrypt},
		"identity first":       {config("- resources: [secrets]\n  providers: [{identity: {}}, {" + key + "}]\n"), slices.Concat([]string{"put an encrypting provider first"}, encrypt[1:])},
		"another resource":     {config("- resources: [widgets.example.com]\n  providers: [{" + key + "}]\n"), slices.Concat([]string{"put an encrypting provider first"}, encrypt[1:])},
		"encryption is set up": {config("- resources: [secrets]\n  providers: [{" + key + "}]\n"), encrypt[2:]},
	} {
		r := c.scanWith(secrets.Options{Config: tc.config})
		if len(r.Next) != len(tc.want) {
			t.Errorf("%s: %d steps, want %d: %+v", name, len(r.Next), len(tc.want), r.Next)
			continue
		}
		for i, s := range r.Next {
			if !strings.Contains(s.Why+" "+s.Command, tc.want[i]) {
				t.Errorf("%s: step %d is %+v, want %q", name, i+1, s, tc.want[i])
			}
		}
	}
	c.put("/registry/x.example.com/$(reboot)/ns/a", `{"kind":"X","apiVersion":"x.example.com/v1"}`)
	for _, s := range c.scanWith(secrets.Options{Config: config("- resources: ['*.*']\n  providers: [{" + key + "}]\n")}).Next {
		if strings.Contains(s.Command, "reboot") {
			t.Errorf("a command from a name in etcd: %s", s.Command)
		}
	}
}
