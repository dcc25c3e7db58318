package disk

import (
	"errors"
	"strings"
	"testing"
)

// Filesystems that are memory or a network are never ok without a word.
func TestFilesystemsAreNamed(t *testing.T) {
	network := []string{"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "lustre", "gpfs", "ocfs2", "gfs2", "beegfs", "afs", "fuse.sshfs", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.rclone", "vboxsf"}
	for _, kind := range network {
		for _, fs := range []Filesystem{{Type: kind}, {Type: "overlay", Underneath: []Layer{{"/u", kind}}}, {Type: "ext4", Underneath: []Layer{{"/img", "ext4"}, {"/dev/x", kind}}}} {
			if names := warnedOf(fs); !strings.Contains(names, "network") {
				t.Errorf("%s over %v: warnings %q", fs.Type, fs.Underneath, names)
			}
		}
	}
	for _, device := range []string{"nbd", "rbd", "drbd"} {
		if names := warnedOf(Filesystem{Type: "ext4", Underneath: []Layer{{"/dev/x", device}}}); names != "network" {
			t.Errorf("%s: warnings %q", device, names)
		}
	}
	if names := warnedOf(Filesystem{Type: "fuse.mine"}); names != "fuse" {
		t.Errorf("an unknown one in user space: %q", names)
	}
	for _, fs := range []Filesystem{{Type: "ext4"}, {Type: "xfs"}, {Type: "zfs"}} {
		if names := warnedOf(fs); names != "" || refuse(fs, Options{}) != nil {
			t.Errorf("%s: warnings %q, %v", fs.Type, names, refuse(fs, Options{}))
		}
	}
	for _, kind := range []string{"tmpfs", "ramfs", "zram", "ram"} {
		for _, fs := range []Filesystem{{Type: kind}, {Type: "overlay", Underneath: []Layer{{"/u", kind}}}, {Type: "xfs", Underneath: []Layer{{"/i", "ext4"}, {"/j", kind}}}} {
			if err := refuse(fs, Options{Dir: "/d"}); !errors.Is(err, ErrCannotMeasure) || !strings.Contains(err.Error(), kind) {
				t.Errorf("%s over %v: %v", fs.Type, fs.Underneath, err)
			}
		}
	}
}

func warnedOf(fs Filesystem) string {
	r := Report{Filesystem: fs}
	r.warn()
	var names []string
	for _, w := range r.Warnings {
		names = append(names, w.Name)
	}
	return strings.Join(names, " ")
}

// A limit that the quoted round meets and another one misses is borderline.
func TestBorderline(t *testing.T) {
	rounds := func(p99s ...float64) *Report {
		r := measured(0.0095, 600, 500e6)
		for _, p99 := range p99s {
			r.Rounds = append(r.Rounds, Round{Fsync: Latency{Count: 1000, P99Seconds: p99}, IOPS: 600})
		}
		return r
	}
	for name, tc := range map[string]struct {
		report  *Report
		require string
		want    string
		verdict Verdict
	}{
		"from 8.5 to 14 ms":        {rounds(0.0085, 0.0095, 0.014, 0.011), "", "p99 14.0 ms, wanted below 10.0 ms", OK},
		"all below":                {rounds(0.0085, 0.0095, 0.0099), "", "", OK},
		"a limit of one's own":     {rounds(0.0085, 0.0095, 0.014), "p99=12ms", "p99 14.0 ms, wanted below 12.0 ms", OK},
		"one that all rounds meet": {rounds(0.0085, 0.0095, 0.014), "p99=20ms,write=1MB", "", OK},
		"slow is not borderline":   {rounds(0.001, 0.0095), "p99=9ms", "", Slow},
		"rates are rates":          {rounds(0.001), "iops=600", "", OK},
		"fewer than the limit wants": {&Report{Pattern: Fio, Fsync: Latency{Count: 1000, P99Seconds: 0.001}, IOPS: 600, Rounds: []Round{
			{Fsync: Latency{Count: 1000}, IOPS: 590}, {Fsync: Latency{Count: 1000}, IOPS: 580}, {Fsync: Latency{Count: 1000}, IOPS: 595},
		}}, "iops=600", "iops 580, wanted at least 600", OK},
	} {
		t.Run(name, func(t *testing.T) {
			var required Requirements
			if tc.require != "" {
				required, _ = ParseRequirements(tc.require) // checked by its own test
			}
			err := tc.report.judge(required)
			var texts []string
			for _, o := range tc.report.Borderline {
				texts = append(texts, o.String())
			}
			if got := strings.Join(texts, "; "); got != tc.want || tc.report.Verdict != tc.verdict || (err != nil) != (tc.verdict == Slow) {
				t.Errorf("borderline %q, verdict %s, %v; want %q, %s", got, tc.report.Verdict, err, tc.want, tc.verdict)
			}
		})
	}
}
