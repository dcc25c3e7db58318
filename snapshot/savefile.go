package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
)

// SaveFile writes a snapshot to the file name, and its manifest beside it. A
// file of that name stays until the new one has been looked into. What killed
// runs left of the same file is removed first.
func SaveFile(ctx context.Context, src Source, name string, opts SaveOptions) (*Saved, error) {
	opts, err := opts.plan()
	if err != nil {
		return nil, err
	}
	opts.examineFile = opts.plain()
	folder, file := store.NewFolder(filepath.Dir(name)), filepath.Base(name)
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return nil, hint.With(fmt.Errorf("save snapshot: %w", err), "make that folder, or correct the path")
	}
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, hint.With(fmt.Errorf("save snapshot: write %s: %w", name, errSpecialFile), "name a file, or - for standard output")
	}
	cleaned, err := opts.sweepParts(name)
	if err != nil {
		return nil, fmt.Errorf("save snapshot: %w", err)
	}
	// Where it cannot be registered, what it leaves when killed goes by its age.
	run, _ := opts.Runs.start(newRun(), runFile{Repository: absolute(name)})
	defer run.end()
	temp := "." + file + "." + run.id + partSuffix
	notes := []string{}
	saved, err := src.take(ctx, opts, run.id, sink{put: func(ctx context.Context, m *Manifest, r io.Reader, size int64) error {
		m.Data = file
		note, err := opts.mayReplace(ctx, name, m)
		if err != nil {
			return err
		}
		notes = note
		_, err = folder.Put(ctx, temp, r, opts.putOptions(m, size))
		return err
	}})
	if saved != nil {
		saved.Cleaned, saved.Notes = cleaned, notes
	}
	if err == nil && opts.examineFile {
		err = saved.Manifest.examine(ctx, folder.Path(temp))
	}
	if err == nil {
		err = withFolderLocked(ctx, filepath.Dir(name), func() error {
			return publish(ctx, folder, temp, saved.Manifest, opts.Signing)
		})
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		return saved, errors.Join(err, folder.Delete(ctx, temp))
	}
	return saved, nil
}

// errSpecialFile tells of a device, a pipe, a link or a folder: nothing that a
// finished snapshot may take the place of.
var errSpecialFile = errors.New("it exists and is no regular file")

// partSuffix ends the name of a file that is not finished.
const partSuffix = ".part"

// renamer is the part of a folder that publish uses.
type renamer interface {
	store.Store
	Rename(from, to string) error
}

// publish puts a finished file in its place, with its manifest. The manifest of
// the file before goes first: beside the new one it would call that damaged, and
// without any either file can be verified by the SHA-256 at its end.
func publish(ctx context.Context, folder renamer, temp string, m *Manifest, signing Signing) error {
	for _, old := range []string{m.Data + manifestSuffix, m.Data + manifestSuffix + signatureSuffix} {
		if err := folder.Delete(ctx, old); err != nil {
			return err
		}
	}
	if err := folder.Rename(temp, m.Data); err != nil {
		return err
	}
	return writeJSON(ctx, signing.Repository(folder), m.Data+manifestSuffix, m)
}

// sweepParts removes unfinished files of the same name: those of dead runs of
// this machine, and of unknown ones when they are old.
func (o SaveOptions) sweepParts(name string) (cleaned []Leftover, err error) {
	ended, living := o.Runs.read(absolute(name))
	defer func() {
		for _, d := range ended {
			d.run.end()
		}
	}()
	dir, err := dirfd.Open(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	hex := fmt.Sprintf(`\.[0-9a-f]{%d}\%s`, runDigits, partSuffix)
	part := regexp.MustCompile(`^\.\.?` + regexp.QuoteMeta(filepath.Base(name)) + `\.([0-9a-f]+)\` + partSuffix + `(` + hex + `)?$`)
	for _, entry := range names {
		found := part.FindStringSubmatch(entry)
		if found == nil || living[found[1]] {
			continue
		}
		info, err := dir.Lstat(entry)
		if err != nil || !info.Mode.IsRegular() {
			continue
		}
		l := Leftover{Key: entry, Since: info.Modified, Reason: "its run on this machine has ended"}
		if ended[found[1]] == nil {
			if o.Now().Sub(l.Since) <= o.staleAfter() {
				continue
			}
			l.Reason = "unfinished since " + l.Since.UTC().Format(time.RFC3339)
		}
		if err := dir.Unlink(entry); err != nil {
			return cleaned, err
		}
		l.Removed = true
		cleaned = append(cleaned, l)
	}
	return cleaned, nil
}

func (o SaveOptions) staleAfter() time.Duration {
	if o.StaleAfter > 0 {
		return o.StaleAfter
	}
	return DefaultStaleAfter
}

// absolute names a file in the same way from everywhere.
func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
