package commands

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/wholefile"
)

// old reads the report to compare with, nil if there is none.
func (f diskFlags) old(a *app.App) (*disk.Report, error) {
	if f.compare == "" {
		return nil, nil
	}
	raw, err := a.ReadFile(f.compare, disk.MaxReport)
	if err != nil {
		return nil, fmt.Errorf("--compare: %w", err)
	}
	old, err := disk.ReadReport(bytes.NewReader(raw))
	if err != nil {
		err = hint.With(err, "keep a report with: etcdkit disk check DIR -w json > OLD.json")
		return nil, fmt.Errorf("--compare %s: %w", f.compare, err)
	}
	return old, nil
}

// page is an HTML page on its way; nil is none.
type page struct{ *wholefile.File }

// page opens the page before anything is measured, so that a wrong path is
// told at once. Without --report it is nil.
func (f diskFlags) page() (*page, error) {
	if f.report == "" {
		return nil, nil
	}
	file, err := wholefile.Create(f.report)
	if err != nil {
		return nil, fmt.Errorf("--report: %w", err)
	}
	return &page{file}, nil
}

func (p *page) write(r *disk.Report) error {
	if p == nil {
		return nil
	}
	err := r.WriteHTML(p)
	if err != nil {
		err = errors.Join(err, p.Discard())
	} else {
		err = p.Keep()
	}
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// discard removes a page that nothing was written to.
func (p *page) discard() error {
	if p == nil {
		return nil
	}
	return p.Discard()
}
