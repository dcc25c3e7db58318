package disk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Filesystem is what the operating system tells about the place of a folder.
// What it does not tell is empty.
type Filesystem struct {
	Type         string   `json:"type"`
	MountPoint   string   `json:"mountPoint,omitempty"`
	MountOptions []string `json:"mountOptions,omitempty"`
	Device       string   `json:"device,omitempty"`
	Model        string   `json:"model,omitempty"`
	Rotational   *bool    `json:"rotational,omitempty"`
	// Virtual is set for a virtual machine's disk, which may say anything of
	// what stands behind it.
	Virtual    bool   `json:"virtual,omitempty"`
	Scheduler  string `json:"scheduler,omitempty"`
	WriteCache string `json:"writeCache,omitempty"` // "write back" or "write through"
	FreeBytes  int64  `json:"freeBytes"`
	TotalBytes int64  `json:"totalBytes"`
	// Underneath is what an overlay's files or a loop device's blocks are in.
	Underneath []Layer `json:"underneath,omitempty"`

	id string // equal for folders on the same filesystem
}

// Layer is a filesystem or a device below the one that is measured.
type Layer struct {
	Path string `json:"path"`
	Type string `json:"type"` // "" where it cannot be seen from here
}

func (l Layer) String() string {
	if l.Type == "" {
		return l.Path + ", which cannot be seen from here"
	}
	return fmt.Sprintf("%s (%s)", l.Path, l.Type)
}

// Warning is a doubt about a measurement. It never changes the verdict.
type Warning struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// minFree is what etcd can grow by before its disk is full; less is worth a word.
const minFree = 1 << 30

// Kind words what kind of disk it is, as far as that is known.
func (fs Filesystem) Kind() string {
	switch {
	case fs.Virtual: // virtual disks say anything of themselves
		return "virtual"
	case fs.Rotational == nil:
		return ""
	case *fs.Rotational:
		return "rotating"
	}
	return "not rotating"
}

// refuse returns an error where a measurement would mean nothing.
func refuse(fs Filesystem, opts Options) error {
	where := ""
	if isMemory(fs.Type) {
		where = fs.Type
	}
	for _, l := range fs.Underneath {
		if where == "" && isMemory(l.Type) {
			where = fmt.Sprintf("%s over %s", fs.Type, l)
		}
	}
	if where == "" {
		return nil
	}
	err := fmt.Errorf("%w %s: it is on %s, which is memory and keeps nothing", ErrCannotMeasure, opts.Dir, where)
	return hint.With(err, "name a folder on the disk that etcd will use")
}

// isMemory reports whether a filesystem or a device keeps its data in memory.
func isMemory(kind string) bool {
	return slices.Contains([]string{"tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "zram", "ram"}, kind)
}

// isNetwork reports whether the data of a filesystem or a device is reached
// through a network, or through a host that may keep it anywhere.
func isNetwork(kind string) bool {
	kind = strings.TrimPrefix(strings.TrimPrefix(kind, "fuse."), "fuseblk.")
	if strings.HasPrefix(kind, "nfs") {
		return true
	}
	return slices.Contains(networkKinds(), kind)
}

func networkKinds() []string {
	return []string{
		"9p", "acfs", "afs", "afpfs", "beegfs", "ceph", "ceph-fuse", "cifs", "coda", "davfs", "davfs2", "gcsfuse", "gfs2", "glusterfs",
		"goofys", "gpfs", "juicefs", "lustre", "moosefs", "mfs", "ncpfs", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "quobyte",
		"rclone", "s3fs", "seaweedfs", "smb3", "smbfs", "sshfs", "vboxsf", "virtiofs", "vmhgfs", "vmhgfs-fuse", "wekafs", "xtreemfs",
		"nbd", "rbd", "drbd", // devices
	}
}

// unlinks reports whether a nameless file is synced like any other. ZFS logs
// nothing for one and f2fs writes a checkpoint at every sync, so that a
// measurement there would flatter the one and wrong the other.
func (fs Filesystem) unlinks() bool {
	return fs.Type != "zfs" && fs.Type != "f2fs"
}

// warn adds the doubts that the filesystem and the numbers raise.
func (r *Report) warn() {
	fs, add := r.Filesystem, r.addWarning
	switch kind := fs.Type; {
	case kind == "overlay":
		add("overlay", "an overlay is a container's own layer: etcd's data belongs on a volume")
	case isNetwork(kind):
		add("network", "%s is a network filesystem: its latency is the network's, and etcd advises against it", kind)
	case strings.HasPrefix(kind, "fuse"):
		add("fuse", "%s runs in user space: whether a sync reaches a disk depends on that program", kind)
	}
	for _, l := range fs.Underneath {
		switch {
		case isNetwork(l.Type):
			add("network", "underneath is %s, reached through a network: its latency is the network's, and etcd advises against it", l)
		case l.Type == "":
			add("underneath", "underneath is %s: it may be memory, or reached through a network", l)
		case strings.HasPrefix(fs.Device, "/dev/loop"):
			add("underneath", "underneath is a file, %s: its filesystem has a share in every sync", l)
		}
	}
	if fs.TotalBytes > 0 && fs.FreeBytes < minFree {
		add("space", "only %s are free: etcd's database and log need room to grow", bytesOf(fs.FreeBytes))
	}
	for _, o := range []string{"nobarrier", "barrier=0"} {
		if slices.Contains(fs.MountOptions, o) {
			add("barrier", "mounted with %s: a sync does not flush the disk's cache, and a power cut can lose what etcd promised", o)
		}
	}
	if floor := r.plausible(); r.Fsync.Count > 0 && r.Fsync.P50Seconds < floor {
		add("sync", "half of the syncs took less than %.0f µs, faster than such a disk can be: it may answer before data is safe", floor*1e6)
	}
}

// plausible returns the least time that an honest sync takes: a rotating disk
// waits for a rotation unless a battery stands behind its cache, any other
// needs the way through the kernel to a device and back.
func (r *Report) plausible() float64 {
	const rotating, solid = 500e-6, 8e-6
	if fs := r.Filesystem; fs.Rotational != nil && *fs.Rotational && !fs.Virtual {
		return rotating
	}
	return solid
}
