// Package completions holds the generated shell completions and what completes
// at the prompt: members, endpoints and keys of the cluster.
//
// A prompt must never hang or show an error, so whoever calls these bounds the
// context and takes an error for "nothing to offer".
package completions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// most bounds how many candidates are offered, and how many keys are read for
// them.
const most = 200

// Cluster is the part of *clientv3.Client that completes.
type Cluster interface {
	MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error)
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
}

// MemberIDs offers the ids of the members, each with its name.
func MemberIDs(ctx context.Context, c Cluster) ([]string, error) {
	return members(ctx, c, func(m *pb.Member) []string {
		return []string{fmt.Sprintf("%x\t%s", m.GetID(), m.GetName())}
	})
}

// MemberNames offers the names of the members that were started, each with its
// id.
func MemberNames(ctx context.Context, c Cluster) ([]string, error) {
	return members(ctx, c, func(m *pb.Member) []string {
		if m.GetName() == "" {
			return nil // not started yet
		}
		return []string{fmt.Sprintf("%s\t%x", m.GetName(), m.GetID())}
	})
}

// Members offers the names of the members, and after them the ids.
func Members(ctx context.Context, c Cluster) ([]string, error) {
	names, err := MemberNames(ctx, c)
	if err != nil {
		return nil, err
	}
	ids, err := MemberIDs(ctx, c)
	return append(names, ids...), err
}

// Endpoints offers the client URLs of the members, each with the member's name.
func Endpoints(ctx context.Context, c Cluster) ([]string, error) {
	return members(ctx, c, func(m *pb.Member) []string {
		urls := make([]string, len(m.GetClientURLs()))
		for i, u := range m.GetClientURLs() {
			urls[i] = u + "\t" + m.GetName()
		}
		return urls
	})
}

// members asks any member that answers: without quorum too.
func members(ctx context.Context, c Cluster, words func(*pb.Member) []string) ([]string, error) {
	resp, err := c.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil, err
	}
	var all []string
	for _, m := range resp.Members {
		all = append(all, words(m)...)
	}
	return all, nil
}

// Keys offers what may follow typed up to the next slash, as a shell completes
// paths. It reads one key for each candidate, never the keys below it.
func Keys(ctx context.Context, c Cluster, typed string) ([]string, error) {
	end := clientv3.GetPrefixRangeEnd(typed)
	if typed == "" {
		end = "\x00"
	}
	from := typed
	if from == "" {
		from = "\x00"
	}
	var all []string
	for len(all) < most {
		resp, err := c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly(), clientv3.WithSerializable())
		if err != nil {
			return nil, err
		}
		if len(resp.Kvs) == 0 {
			break
		}
		key := string(resp.Kvs[0].Key)
		word := upToSlash(key, len(typed))
		all = append(all, word)
		from = key + "\x00"
		if strings.HasSuffix(word, "/") && word != key {
			from = clientv3.GetPrefixRangeEnd(word)
		}
	}
	return slices.Compact(all), nil // a key may be named like the folder that follows it
}

// upToSlash cuts key after the first slash that comes after its first n bytes.
func upToSlash(key string, n int) string {
	if i := strings.IndexByte(key[n:], '/'); i >= 0 {
		return key[:n+i+1]
	}
	return key
}
