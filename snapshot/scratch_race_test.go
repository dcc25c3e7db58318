package snapshot

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
)

// besideSweepers runs start again and again beside a sweeper.
func besideSweepers(t *testing.T, start func(i int) error, sweep func() error) {
	t.Helper()
	const starts = 60
	over := make(chan struct{})
	var sweeper, starters sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				if err := sweep(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for n := range 2 {
		starters.Go(func() {
			for i := range starts {
				if err := start(n*starts + i); err != nil {
					t.Errorf("start %d: %v", i, err)
					return
				}
			}
		})
	}
	starters.Wait()
	close(over)
	sweeper.Wait()
}

// A run that begins is not taken for one that ended.
func TestRunsBeginBesideSweepers(t *testing.T) {
	runs := Runs{Dir: filepath.Join(t.TempDir(), "runs")}
	besideSweepers(t, func(i int) error {
		r, err := runs.start(fmt.Sprintf("%08x", i), runFile{Repository: "r/"})
		r.end()
		return err
	}, func() error {
		ended, _ := runs.read("r/")
		for id, d := range ended {
			d.run.abandon()
			return fmt.Errorf("run %s lives, and was taken for dead", id)
		}
		return nil
	})
}

// Neither is the stage of a restore, nor that of a log outside of its target.
func TestStagesAreMadeBesideSweepers(t *testing.T) {
	dir, wal := t.TempDir(), filepath.Join(t.TempDir(), "wal")
	open := func() (*stagedDir, error) { return openStagedDir(RestoreOptions{DataDir: dir, WALDir: wal}, 0) }
	besideSweepers(t, func(int) error {
		target, err := open()
		if err != nil {
			return err
		}
		return target.close()
	}, func() error {
		for _, at := range []string{dir, filepath.Dir(wal)} {
			if left, err := stages().Sweep(at); err != nil || len(left) > 0 {
				return errors.Join(err, fmt.Errorf("left alone: %v", left))
			}
		}
		return nil
	})
}
