package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstPIDNamespace is the kernel's number of the PID namespace that sees all.
const firstPIDNamespace = "pid:[4026531836]"

// lookAtProcesses finds the running etcds whose data is on fs: etcd itself, and
// whatever has one built in. Processes that this user may not look into are
// judged by their command line, and counted.
func lookAtProcesses(fs Filesystem) sight {
	var s sight
	processes, err := os.ReadDir("/proc")
	if err != nil {
		s.blind = append(s.blind, "the list of processes cannot be read")
	}
	if namespace, err := os.Readlink("/proc/self/ns/pid"); err == nil && namespace != firstPIDNamespace {
		s.blind = append(s.blind, "processes outside of this container's PID namespace are not visible")
	}
	if hidesProcesses() {
		s.blind = append(s.blind, "/proc hides the processes of other users (hidepid)")
	}
	for _, p := range processes {
		if pid, err := strconv.Atoi(p.Name()); err == nil {
			s.lookInto(fs, pid)
		}
	}
	return s
}

// lookInto looks for etcd's data in one process.
func (s *sight) lookInto(fs Filesystem, pid int) {
	name := strconv.Itoa(pid)
	raw, cmdErr := os.ReadFile(filepath.Join("/proc", name, "cmdline"))
	args := strings.Split(string(bytes.TrimRight(raw, "\x00")), "\x00")
	data, err := openData(fs, name)
	if data == "" {
		data = flaggedData(fs, args)
	}
	isKernels := cmdErr == nil && len(raw) == 0 // a thread of the kernel, or a process that has ended
	switch {
	case data != "":
		s.found = append(s.found, Neighbour{PID: pid, Data: data, Args: args})
	case errors.Is(err, os.ErrPermission) && !isKernels:
		s.unseen++
	}
}

// hidesProcesses reports whether /proc lists only the processes of this user.
func hidesProcesses() bool {
	table, _ := os.ReadFile("/proc/self/mountinfo") // without it nothing else is listed either
	for _, m := range parseMounts(table) {
		if m.point == "/proc" && slices.ContainsFunc(m.options, func(o string) bool {
			return o == "hidepid=2" || o == "hidepid=invisible" || o == "hidepid=4" || o == "hidepid=ptraceable"
		}) {
			return os.Geteuid() != 0
		}
	}
	return false
}

// openData returns a file of etcd's data that a process has open on fs. The
// error says that not all of its files could be seen.
func openData(fs Filesystem, pid string) (string, error) {
	dir := filepath.Join("/proc", pid, "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var denied error
	for _, fd := range fds {
		path, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if errors.Is(err, os.ErrPermission) {
			denied = err
		}
		if err != nil || !isData(path) {
			continue
		}
		n, err := strconv.Atoi(fd.Name())
		if err == nil && onFilesystem(fs, pid, n) {
			return path, nil
		}
	}
	return "", denied
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
