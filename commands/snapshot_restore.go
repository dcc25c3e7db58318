package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// restoreSources opens the backups that snapshot restore takes.
type restoreSources struct {
	a         *app.App
	repo      repoFlags
	anyQuorum bool
	olderOK   bool
}

// Bind defines the flags that say how to open a backup.
func (s *restoreSources) Bind(cmd *cobra.Command) {
	s.repo.bindS3(cmd, "")
	s.repo.bindTrust()
	cmd.ValidArgsFunction = s.repo.complete(s.a)
	s.repo.bindIdentity()
	cmd.Flags().BoolVar(&s.anyQuorum, "any-quorum", false, "latest may be a backup of a member without quorum, which may be old")
	cmd.Flags().BoolVar(&s.olderOK, "older-ok", false, "latest may be older than a backup that is missing data or cannot be read")
}

// Open opens a backup, or a file that is compressed, encrypted, or has a
// manifest beside it.
func (s *restoreSources) Open(ctx context.Context, source string, anyTrailer bool) (*snapshot.Opened, error) {
	location, err := s.repo.locate(s.a, source, "")
	if err != nil {
		return nil, err
	}
	ids, err := s.repo.identities(s.a)
	if err != nil {
		return nil, err
	}
	signing, err := s.repo.signing(s.a)
	if err != nil {
		return nil, err
	}
	o, err := snapshot.OpenSource(ctx, location, snapshot.OpenOptions{
		Identities: ids, AnyQuorum: s.anyQuorum, OlderOK: s.olderOK, AnyTrailer: anyTrailer, Signing: signing,
		OpenStore: func(ctx context.Context, location string) (store.Store, error) {
			return s.repo.open(ctx, s.a, location)
		},
	})
	return o, storeKind(err)
}

// Signing returns whose signatures a source must have.
func (s *restoreSources) Signing() (snapshot.Signing, error) { return s.repo.signing(s.a) }
