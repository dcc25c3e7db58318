//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

// The lock of a database is tried without following a link or waiting at a pipe.
func TestTheLockOfADatabaseIsTried(t *testing.T) {
	outside := t.TempDir()
	for name, tc := range map[string]struct {
		make  func(dir string) error
		found bool
		blind string
	}{
		"no data":          {func(string) error { return nil }, false, ""},
		"a file instead":   {func(dir string) error { return os.WriteFile(filepath.Join(dir, "member"), nil, 0o600) }, false, ""},
		"the lock is free": {func(dir string) error { return makeDatabase(t, dir, false) }, false, ""},
		"held":             {func(dir string) error { return makeDatabase(t, dir, true) }, true, ""},
		"behind a link": {func(dir string) error {
			return errors.Join(makeDatabase(t, outside, true), os.Symlink(filepath.Join(outside, "member"), filepath.Join(dir, "member")))
		}, false, "symbolic link"},
		"a pipe instead": {func(dir string) error {
			snap := filepath.Join(dir, "member", "snap")
			return errors.Join(os.MkdirAll(snap, 0o700), unix.Mkfifo(filepath.Join(snap, "db"), 0o600))
		}, false, "regular"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tc.make(dir); err != nil {
				t.Fatal(err)
			}
			at, err := dirfd.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer at.Close()
			var s sight
			done := make(chan struct{})
			go func() { s.lookAtLock(at, dir); close(done) }()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("it waits")
			}
			blind := strings.Join(s.blind, "; ")
			if (len(s.found) == 1) != tc.found || (blind == "") != (tc.blind == "") || !strings.Contains(blind, tc.blind) {
				t.Errorf("found %v, blind %q; want found %v, blind %q", s.found, blind, tc.found, tc.blind)
			}
		})
	}
}

// makeDatabase makes a database, and keeps it open for the rest of the test on demand.
func makeDatabase(t *testing.T, dir string, held bool) error {
	snap := filepath.Join(dir, "member", "snap")
	if err := os.MkdirAll(snap, 0o700); err != nil {
		return err
	}
	db, err := bbolt.Open(filepath.Join(snap, "db"), 0o600, nil)
	if err != nil || !held {
		return errors.Join(err, db.Close())
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	return nil
}

// What cannot be seen reduces the load, and refuses what has no reduced form.
func TestWhatCannotBeSeenReducesTheLoad(t *testing.T) {
	blind := sight{unseen: 2}
	for name, tc := range map[string]struct {
		opts    Options
		seen    sight
		gentle  bool
		refused bool
	}{
		"all was seen":                   {Options{}, sight{}, false, false},
		"something was not":              {Options{}, blind, true, false},
		"with --force":                   {Options{Force: true}, blind, false, false},
		"a pattern without reduced load": {Options{Pattern: WAL}, blind, false, true},
		"several writers":                {Options{Jobs: 2}, blind, false, true},
		"bandwidth is required":          {Options{Require: Requirements{{WriteRate, 1}}}, blind, false, true},
		"only a place was not":           {Options{}, sight{blind: []string{"x"}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			opts, err := tc.opts.complete()
			if err != nil {
				t.Fatal(err)
			}
			got, err := opts.reduceFor(tc.seen, tc.opts)
			if errors.Is(err, ErrEtcdUnseen) != tc.refused || (err != nil) != tc.refused || got.Gentle != tc.gentle {
				t.Errorf("gentle %v, %v; want gentle %v, refused %v", got.Gentle, err, tc.gentle, tc.refused)
			}
			if got.Gentle && got.Rounds*int(got.Size) != gentleRounds*gentleWrites*got.Block {
				t.Errorf("%d rounds of %d bytes are not reduced", got.Rounds, got.Size)
			}
		})
	}
}
