package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

// cutShort is a folder whose process ends after so many changes.
type cutShort struct {
	*store.Folder
	left int
}

var errPowerCut = errors.New("power cut")

func (f *cutShort) step() error {
	if f.left--; f.left < 0 {
		return errPowerCut
	}
	return nil
}

func (f *cutShort) Delete(ctx context.Context, key string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Folder.Delete(ctx, key)
}

func (f *cutShort) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Folder.Rename(from, to)
}

func (f *cutShort) Put(ctx context.Context, key string, src io.Reader, opts store.PutOptions) (int64, error) {
	if err := f.step(); err != nil {
		return 0, err
	}
	return f.Folder.Put(ctx, key, src, opts)
}

// Wherever a save over an older file ends, the file and the manifest beside it
// belong together.
func TestAFileNeverStandsBesideTheManifestOfAnother(t *testing.T) {
	t.Parallel()
	const name, temp = "x.db", ".x.db.00112233.part"
	for steps, want := range []string{"old, with its manifest", "old", "old", "new", "new, with its manifest"} {
		dir := t.TempDir()
		write := func(file, content string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(name, "old")
		write(name+manifestSuffix, `{"memberName": "old"}`)
		write(temp, "new")
		folder := &cutShort{store.NewFolder(dir), steps}
		err := publish(t.Context(), folder, temp, &Manifest{Data: name, MemberName: "new"}, Signing{})
		if (err == nil) != (steps == 4) {
			t.Errorf("after %d steps: %v", steps, err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got := string(raw)
		if raw, err := os.ReadFile(filepath.Join(dir, name+manifestSuffix)); err == nil {
			var m Manifest
			if err := json.Unmarshal(raw, &m); err != nil || m.MemberName != got {
				t.Errorf("after %d steps, beside the %s file stands %s, %v", steps, got, raw, err)
			}
			got += ", with its manifest"
		}
		if got != want {
			t.Errorf("after %d steps: %s; want %s", steps, got, want)
		}
	}
}

func TestWhatAKilledSaveLeftOfAFileGoesWithTheNext(t *testing.T) {
	t.Parallel()
	const dead, alive, unknown = "00112233", "44556677", "8899aabb"
	now := time.Now()
	for name, tc := range map[string]struct {
		part    string
		old     bool
		removed bool
	}{
		"of a dead run":                    {".x.db." + dead + ".part", false, true},
		"of one killed while writing":      {"..x.db." + dead + ".part.ff00ff00.part", false, true},
		"of a living run, however old":     {".x.db." + alive + ".part", true, false},
		"of a young one that is not known": {".x.db." + unknown + ".part", false, false},
		"of an old one":                    {".x.db." + unknown + ".part", true, true},
		"of another file":                  {".y.db." + dead + ".part", true, false},
		"of somebody else":                 {"x.db.part", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			opts := SaveOptions{Runs: Runs{Dir: t.TempDir()}, Now: func() time.Time { return now }}
			target := filepath.Join(dir, "x.db")
			for _, id := range []string{dead, alive} {
				run, err := opts.Runs.start(id, runFile{Repository: target})
				if err != nil {
					t.Fatal(err)
				}
				defer run.end()
				if id == dead {
					run.abandon()
				}
			}
			part := filepath.Join(dir, tc.part)
			if err := os.WriteFile(part, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if tc.old {
				if err := os.Chtimes(part, now, now.Add(-48*time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			cleaned, err := opts.sweepParts(target)
			_, statErr := os.Stat(part)
			if err != nil || os.IsNotExist(statErr) != tc.removed || (len(cleaned) == 1) != tc.removed {
				t.Errorf("%+v, %v; removed: %t, want %t", cleaned, err, os.IsNotExist(statErr), tc.removed)
			}
		})
	}
}
