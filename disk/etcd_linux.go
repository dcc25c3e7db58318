package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Neighbours finds the running etcds whose data is on fs: etcd itself, and
// whatever has one built in. Processes that this user may not look into are
// judged by their command line.
func Neighbours(fs Filesystem) []Neighbour {
	var found []Neighbour
	processes, _ := os.ReadDir("/proc") // without /proc nothing can be found
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		raw, _ := os.ReadFile(filepath.Join("/proc", p.Name(), "cmdline")) // it may be gone already
		args := strings.Split(string(bytes.TrimRight(raw, "\x00")), "\x00")
		data := openData(fs, p.Name())
		if data == "" {
			data = flaggedData(fs, args)
		}
		if data != "" {
			found = append(found, Neighbour{PID: pid, Data: data, Args: args})
		}
	}
	return found
}

// openData returns a file of etcd's data that a process has open on fs.
func openData(fs Filesystem, pid string) string {
	dir := filepath.Join("/proc", pid, "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		path, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if err != nil || !isData(path) {
			continue
		}
		n, err := strconv.Atoi(fd.Name())
		if err == nil && onFilesystem(fs, pid, n) {
			return path
		}
	}
	return ""
}

// isData tells etcd's database and its log by their names.
func isData(path string) bool {
	return strings.HasSuffix(path, "/member/snap/db") ||
		strings.HasSuffix(path, ".wal") && filepath.Base(filepath.Dir(path)) == "wal" && !strings.Contains(path, "/"+scratchPrefix)
}

func onFilesystem(fs Filesystem, pid string, fd int) bool {
	if m, ok := mountOf(pid, fd); ok {
		return m.device == fs.id
	}
	return deviceOf(filepath.Join("/proc", pid, "fd", strconv.Itoa(fd))) == fs.id
}

// deviceOf returns the device number of a file's filesystem, as mountinfo
// writes it; "" when there is none to be had.
func deviceOf(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return strconv.FormatUint(uint64(unix.Major(uint64(st.Dev))), 10) + ":" + strconv.FormatUint(uint64(unix.Minor(uint64(st.Dev))), 10) // uint32 on mips
}

// flaggedData returns the data directory on an etcd's command line, if it is
// on fs.
func flaggedData(fs Filesystem, args []string) string {
	if filepath.Base(args[0]) != "etcd" {
		return ""
	}
	n := Neighbour{Args: args}
	for _, name := range []string{"data-dir", "wal-dir"} {
		if dir := n.Flag(name); filepath.IsAbs(dir) && deviceOf(dir) == fs.id && fs.id != "" {
			return dir
		}
	}
	return ""
}
