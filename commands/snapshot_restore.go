package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
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
	return s.repo.openSource(ctx, s.a, source, snapshot.OpenOptions{AnyQuorum: s.anyQuorum, OlderOK: s.olderOK, AnyTrailer: anyTrailer})
}

// Signing returns whose signatures a source must have.
func (s *restoreSources) Signing() (snapshot.Signing, error) { return s.repo.signing(s.a) }
