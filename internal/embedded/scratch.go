package embedded

import (
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/scratch"
)

// folders are the temporary folders of clusters.
func folders() scratch.Kind { return scratch.Kind{Prefix: "etcdkit-cluster-", Marker: "in-use"} }

// newScratch creates a temporary folder, after removing those that killed
// processes of this user left behind.
func newScratch(log *zap.Logger) (*scratch.Folder, error) {
	left, err := folders().Sweep("")
	if err != nil {
		log.Warn("cannot remove what killed processes left", zap.Error(err))
	}
	for _, l := range left {
		log.Warn("a temporary folder is left alone", zap.String("path", l.Path), zap.Error(l.Err))
	}
	return folders().New("")
}
