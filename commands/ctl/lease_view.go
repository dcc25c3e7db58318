package ctl

import (
	"fmt"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Upstream's protobuf form of most lease responses is their header alone.

func (t *tree) grantResult(r *clientv3.LeaseGrantResponse) result {
	v := t.kvView()
	return result{
		json: r, proto: r.ResponseHeader,
		simple: lines(fmt.Sprintf("lease %016x granted with TTL(%ds)", r.ID, r.TTL)),
		fields: func(w io.Writer) {
			v.header(w, r.ResponseHeader)
			v.leaseFields(w, r.ID, r.TTL)
		},
	}
}

func (v kvView) leaseFields(w io.Writer, id clientv3.LeaseID, ttl int64) {
	fmt.Fprintln(w, `"ID" :`, v.lease(int64(id)))
	fmt.Fprintln(w, `"TTL" :`, ttl)
}

func (t *tree) revokeResult(id clientv3.LeaseID, r *clientv3.LeaseRevokeResponse) result {
	v := t.kvView()
	form := result{
		json:   r,
		simple: lines(fmt.Sprintf("lease %016x revoked", id)),
		fields: func(w io.Writer) { v.header(w, (*pb.LeaseRevokeResponse)(r).GetHeader()) },
	}
	if !t.upstream() {
		form.proto = (*pb.LeaseRevokeResponse)(r)
	}
	return form
}

func (t *tree) keepAliveResult(r *clientv3.LeaseKeepAliveResponse) result {
	v := t.kvView()
	return result{
		json: r, proto: r.ResponseHeader,
		simple: lines(fmt.Sprintf("lease %016x keepalived with TTL(%d)", r.ID, r.TTL)),
		fields: func(w io.Writer) {
			v.header(w, r.ResponseHeader)
			v.leaseFields(w, r.ID, r.TTL)
		},
	}
}

func (t *tree) timeToLiveResult(r *clientv3.LeaseTimeToLiveResponse, keys bool) result {
	v := t.kvView()
	return result{
		json: r, proto: r.ResponseHeader,
		simple: func(w io.Writer) { timeToLiveSimple(w, r, keys) },
		exact:  true,
		fields: func(w io.Writer) {
			v.header(w, r.ResponseHeader)
			v.leaseFields(w, r.ID, r.TTL)
			fmt.Fprintln(w, `"GrantedTTL" :`, r.GrantedTTL)
			for _, k := range r.Keys {
				fmt.Fprintf(w, "\"Key\" : %q\n", k)
			}
		},
	}
}

func timeToLiveSimple(w io.Writer, r *clientv3.LeaseTimeToLiveResponse, keys bool) {
	if r.GrantedTTL == 0 && r.TTL == -1 {
		fmt.Fprintf(w, "lease %016x already expired\n", r.ID)
		return
	}
	fmt.Fprintf(w, "lease %016x granted with TTL(%ds), remaining(%ds)", r.ID, r.GrantedTTL, r.TTL)
	if keys {
		fmt.Fprintf(w, ", attached keys(%s)", r.Keys)
	}
	fmt.Fprintln(w)
}

func (t *tree) leasesResult(r *clientv3.LeaseLeasesResponse) result {
	v := t.kvView()
	return result{
		json: r, proto: r.ResponseHeader,
		simple: func(w io.Writer) {
			fmt.Fprintf(w, "found %d leases\n", len(r.Leases))
			for _, l := range r.Leases {
				fmt.Fprintf(w, "%016x\n", l.ID)
			}
		},
		fields: func(w io.Writer) {
			v.header(w, r.ResponseHeader)
			for _, l := range r.Leases {
				fmt.Fprintln(w, `"ID" :`, v.lease(int64(l.ID)))
			}
		},
	}
}
