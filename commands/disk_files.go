package commands

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// old reads the report to compare with, nil if there is none.
func (f diskFlags) old() (*disk.Report, error) {
	if f.compare == "" {
		return nil, nil
	}
	file, err := os.Open(f.compare)
	if err != nil {
		return nil, fmt.Errorf("--compare: %w", err)
	}
	defer file.Close()
	old, err := disk.ReadReport(file)
	if err != nil {
		err = hint.With(err, "keep a report with: etcdkit disk check DIR -w json > OLD.json")
		return nil, fmt.Errorf("--compare %s: %w", f.compare, err)
	}
	return old, nil
}

// page is an HTML page that appears under its name when it is whole.
type page struct {
	file *os.File
	path string
}

// page opens the page before anything is measured, so that a wrong path is
// told at once. Without --report it is nil.
func (f diskFlags) page() (*page, error) {
	if f.report == "" {
		return nil, nil
	}
	file, err := os.CreateTemp(filepath.Dir(f.report), "."+filepath.Base(f.report)+".*")
	if err != nil {
		return nil, fmt.Errorf("--report: %w", err)
	}
	return &page{file: file, path: f.report}, nil
}

func (p *page) write(r *disk.Report) error {
	if p == nil {
		return nil
	}
	err := errors.Join(r.WriteHTML(p.file), p.file.Close())
	if err == nil {
		err = os.Rename(p.file.Name(), p.path)
	}
	if err != nil {
		return fmt.Errorf("--report: %w", errors.Join(err, os.Remove(p.file.Name())))
	}
	return nil
}

// discard removes a page that nothing was written to.
func (p *page) discard() error {
	if p == nil {
		return nil
	}
	return errors.Join(p.file.Close(), os.Remove(p.file.Name()))
}
