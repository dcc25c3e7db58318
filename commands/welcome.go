package commands

import "github.com/spf13/cobra"

// welcome is what etcdkit says when it is called alone.
const welcome = `etcdkit looks after etcd clusters.

  etcdkit health                              is the cluster all right, and if not, what to do?
  etcdkit snapshot save s3://bucket/etcd/     take a backup that is known to be good
  etcdkit snapshot restore SOURCE             bring a member back from one
  etcdkit secrets scan                        which Kubernetes Secrets are not encrypted?
  etcdkit disk check DIR                      is this disk fast enough for etcd?

It has every command of etcdctl and etcdutl too, and is a drop-in for both when it is
called by their names.

  etcdkit help          all commands
  etcdkit options       the settings that all commands share
  etcdkit playground    a throwaway cluster to try them on
`

// The groups of the native commands on the help page, before etcdctl's.
const (
	groupCluster = "cluster"
	groupBackup  = "backup"
	groupProof   = "proof"
	groupSelf    = "self"
)

func nativeGroups() []*cobra.Group {
	return []*cobra.Group{
		{ID: groupCluster, Title: "Judge a cluster and bring it back to health"},
		{ID: groupBackup, Title: "Back up, verify, restore, look inside files"},
		{ID: groupProof, Title: "Measure and prove"},
		{ID: groupSelf, Title: "Try and set up"},
	}
}
