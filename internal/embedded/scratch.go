package embedded

import "github.com/etcdkit/etcdkit/internal/scratch"

// folders are the temporary folders of clusters.
func folders() scratch.Kind { return scratch.Kind{Prefix: "etcdkit-cluster-", Marker: "in-use"} }

// newScratch creates a temporary folder, after removing those that killed
// processes of this user left behind. What may not be one of these is returned.
func newScratch() (*scratch.Folder, []scratch.Left, error) {
	left, err := folders().Sweep("")
	if err != nil {
		return nil, nil, err
	}
	f, err := folders().New("")
	return f, left, err
}
