//go:build unix

package snapshot_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/store"
)

// barePipe is the victim that a save is measured against: etcd's client into
// minio's, with the same parts, and no check of anything.
const barePipe = "bare pipe"

func runBarePipe() int {
	err := func() error {
		ctx := context.Background()
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Getenv(envEtcd)}})
		if err != nil {
			return err
		}
		defer c.Close()
		s3, err := minio.New(strings.TrimPrefix(os.Getenv(envS3), "http://"), &minio.Options{Creds: credentials.NewEnvAWS(), Region: "us-east-1"})
		if err != nil {
			return err
		}
		snapshot, err := c.SnapshotWithVersion(ctx)
		if err != nil {
			return err
		}
		defer snapshot.Snapshot.Close()
		_, err = s3.PutObject(ctx, os.Getenv(envURL), "bare.db", snapshot.Snapshot, -1, minio.PutObjectOptions{
			PartSize: uint64(store.PartSize(0)), NumThreads: store.DefaultParallel, ConcurrentStreamParts: true,
		})
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
