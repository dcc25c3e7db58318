package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// CheckCluster checks the description of the cluster in opts, as Restore does
// before anything else.
func CheckCluster(opts RestoreOptions) error {
	if opts.Log == nil {
		opts.Log = zap.NewNop()
	}
	_, err := newNewMember(opts)
	return err
}

// PlannedMember is one member of the cluster that a restore plans.
type PlannedMember struct {
	Name     string
	PeerURLs []string
}

// PlanMembers returns the members of the cluster, by name.
func PlanMembers(opts RestoreOptions) []PlannedMember {
	all, err := types.NewURLsMap(opts.InitialCluster)
	if err != nil {
		return nil // CheckCluster says why
	}
	var members []PlannedMember
	for name, urls := range all {
		members = append(members, PlannedMember{Name: name, PeerURLs: urls.StringSlice()})
	}
	slices.SortFunc(members, func(a, b PlannedMember) int { return strings.Compare(a.Name, b.Name) })
	return members
}

// Facts are the numbers that every member of a planned restore must be given
// alike.
type Facts struct {
	Token string
	Bump  Bump // Auto stays where a stream finds no room, or a log is to be applied: it decides alike everywhere
}

// PlanFacts reads a source to its end and finds the numbers that a restore of
// it would choose.
func PlanFacts(ctx context.Context, src RestoreSource, opts RestoreOptions) (Facts, error) {
	f := Facts{Token: opts.Token, Bump: opts.Bump}
	s, buf := newTrailed(), make([]byte, copyPiece)
	kept := f.keep(src)
	defer kept.remove()
	for ended := false; !ended; {
		n, end, err := readPiece(src.Reader, buf)
		if err != nil {
			return f, fmt.Errorf("read %s: %w", src.Name, err)
		}
		if ctx.Err() != nil {
			return f, context.Cause(ctx)
		}
		if s.n == 0 && !end {
			if err := src.checkBeginning(buf[:n]); err != nil {
				return f, err
			}
		}
		s.add(buf[:n])
		if _, err := kept.Write(buf[:n]); err != nil {
			kept.remove()
			kept = planCopy{}
		}
		ended = end
	}
	c := copiedOf(s)
	if kept.decoded != nil {
		src.At = kept.file
	}
	if err := c.judge(src, opts.SkipHashCheck); err != nil {
		return f, err
	}
	if src.Log != nil {
		var err error
		if c.Replayed, err = src.Log.unapplied(ctx); err != nil {
			return f, err
		}
	}
	if opts.Accept != nil {
		if err := opts.Accept(*c); err != nil {
			return f, err
		}
	}
	if f.Token == "" {
		f.Token = c.Token()
	}
	if !f.Bump.Auto || src.At == nil || c.Replayed != nil && c.Replayed.Entries > 0 {
		return f, nil
	}
	var err error
	f.Bump, err = planBump(ctx, src, c.FileSize)
	return f, err
}

// planCopy is a temporary copy of a stream, to look into; nil where none is
// needed, or possible.
type planCopy struct{ *decoded }

// keep begins a copy where a number of the plan needs more than a stream.
func (f Facts) keep(src RestoreSource) planCopy {
	s := &decoded{}
	if !f.Bump.Auto || src.At != nil || room("", src.Size, "") != nil || s.create() != nil {
		return planCopy{}
	}
	return planCopy{s}
}

func (p planCopy) Write(b []byte) (int, error) {
	if p.decoded == nil {
		return len(b), nil
	}
	return scratchWriter(p).Write(b)
}

func (p planCopy) remove() {
	if p.decoded != nil {
		p.decoded.remove()
	}
}

// planBump decides what an automatic bump would be.
func planBump(ctx context.Context, src RestoreSource, size int64) (Bump, error) {
	db, err := mvccdb.Open(src.At, size)
	if err != nil {
		return Bump{}, fmt.Errorf("%s: %w", src.Name, err)
	}
	keys := newKeyWatch()
	report, err := db.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true, Watch: keys.watch})
	if err != nil {
		return Bump{}, err
	}
	r := Restored{Copied: Copied{Report: report}, Kubernetes: keys.prefix()}
	if err := r.setRevision(Bump{Auto: true}); err != nil {
		return Bump{}, err
	}
	return Bump{By: r.BumpedBy, Compacted: r.Compacted}, nil
}
