package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dsync makes every write return only when its data is on the disk.
const dsync = unix.O_DSYNC

// mount is one line of mountinfo.
type mount struct {
	id, device          string // device is major:minor, "0:N" where no block device stands behind
	point, kind, source string
	options             []string
}

// StatFilesystem tells on which filesystem a folder is.
func StatFilesystem(dir string) (Filesystem, error) {
	f, err := os.Open(dir)
	if err != nil {
		return Filesystem{}, err
	}
	defer f.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return Filesystem{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	fs := Filesystem{
		Type:       magicName(int64(st.Type)),          // uint32 on s390x
		FreeBytes:  int64(st.Bavail) * int64(st.Bsize), // the same
		TotalBytes: int64(st.Blocks) * int64(st.Bsize), // the same
	}
	// All below comes from /proc and /sys, which a container may hide.
	m, ok := mountOf("self", int(f.Fd()))
	if !ok {
		return fs, nil
	}
	fs.Type, fs.MountPoint, fs.MountOptions, fs.Device, fs.id = m.kind, m.point, m.options, m.source, m.device
	fs.readQueue(m)
	fs.lookUnderneath(m)
	return fs, nil
}

// mountOf returns the mount behind an open file of a process.
func mountOf(pid string, fd int) (mount, bool) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%s/fdinfo/%d", pid, fd))
	if err != nil {
		return mount{}, false
	}
	_, rest, ok := strings.Cut(string(info), "mnt_id:")
	if !ok {
		return mount{}, false
	}
	id, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	table, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		return mount{}, false
	}
	for _, m := range parseMounts(table) {
		if m.id == id {
			return m, true
		}
	}
	return mount{}, false
}

// parseMounts reads the format that proc(5) describes. Lines it does not
// understand are left out.
func parseMounts(table []byte) []mount {
	var mounts []mount
	for line := range strings.Lines(string(table)) {
		if m, ok := parseMount(line); ok {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

func parseMount(line string) (m mount, ok bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 6 || len(right) < 2 {
		return mount{}, false
	}
	m = mount{
		id: left[0], device: left[2], point: unescape(left[4]),
		kind: right[0], source: unescape(right[1]), options: strings.Split(left[5], ","),
	}
	if len(right) > 2 {
		ofFilesystem := slices.DeleteFunc(strings.Split(right[2], ","), func(o string) bool { return o == "rw" || o == "ro" })
		m.options = append(m.options, ofFilesystem...)
	}
	return m, true
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// readQueue reads what the kernel knows of the block device behind a mount.
func (fs *Filesystem) readQueue(m mount) {
	dir, err := filepath.EvalSymlinks("/sys/dev/block/" + blockDevice(m))
	if err != nil {
		return
	}
	if _, err := os.Stat(filepath.Join(dir, "queue")); errors.Is(err, os.ErrNotExist) {
		dir = filepath.Dir(dir) // a partition's queue is that of its disk
	}
	read := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(dir, name)) // absent on some devices
		return strings.TrimSpace(string(b))
	}
	if r := read("queue/rotational"); r != "" {
		rotational := r == "1"
		fs.Rotational = &rotational
	}
	fs.Scheduler = chosen(read("queue/scheduler"))
	fs.WriteCache = read("queue/write_cache")
	fs.Model = read("device/model")
	fs.Virtual = isVirtual(dir, fs.Model)
}

// blockDevice returns the number of the device behind a mount, major:minor.
func blockDevice(m mount) string {
	if strings.HasPrefix(m.source, "/dev/") { // btrfs has a device number of its own
		var st unix.Stat_t
		if unix.Stat(m.source, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK {
			return fmt.Sprintf("%d:%d", unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))) // uint32 on mips
		}
	}
	return m.device
}

// isVirtual tells a hypervisor's disk by its bus or its name.
func isVirtual(path, model string) bool {
	for _, bus := range []string{"/virtio", "/vmbus", "/VMBUS", "/vbd-", "/xen"} {
		if strings.Contains(path, bus) {
			return true
		}
	}
	model = strings.ToLower(model)
	return strings.Contains(model, "virtual") || strings.Contains(model, "qemu")
}

// chosen returns the word in brackets: "none [mq-deadline]" is mq-deadline.
func chosen(list string) string {
	if _, rest, ok := strings.Cut(list, "["); ok {
		word, _, _ := strings.Cut(rest, "]")
		return word
	}
	return list
}

// magicName names the filesystems that matter here where /proc does not.
func magicName(magic int64) string {
	switch magic {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "cifs"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.AFS_SUPER_MAGIC:
		return "afs"
	case unix.CODA_SUPER_MAGIC:
		return "coda"
	case unix.OCFS2_SUPER_MAGIC:
		return "ocfs2"
	case 0x00c36400:
		return "ceph"
	case 0x0bd00bd0:
		return "lustre"
	case 0x47504653:
		return "gpfs"
	case 0x01161970:
		return "gfs2"
	case 0x2fc12fc1:
		return "zfs"
	}
	return fmt.Sprintf("0x%x", magic)
}
