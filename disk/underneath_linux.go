package disk

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLayers bounds how far down filesystems and devices are followed.
const maxLayers = 8

// lookUnderneath finds what an overlay's files, or the blocks of the device
// behind a mount, are in.
func (fs *Filesystem) lookUnderneath(m mount) { fs.Underneath = layersBelow(m, maxLayers) }

func layersBelow(m mount, left int) []Layer {
	if left == 0 {
		return nil
	}
	if m.kind == "overlay" {
		return fileLayers(upperOf(m), left-1)
	}
	return deviceLayers("/sys/dev/block/"+blockDevice(m), left-1)
}

// upperOf returns the folder that an overlay writes to, as whoever mounted it
// saw it.
func upperOf(m mount) string {
	for _, o := range m.options {
		if dir, ok := strings.CutPrefix(o, "upperdir="); ok {
			return dir
		}
	}
	return "its upper folder"
}

// fileLayers returns the filesystem that a path is on, and what is below that.
func fileLayers(path string, left int) []Layer {
	m, ok := mountOfPath(path)
	if !ok {
		return []Layer{{Path: path}}
	}
	return append([]Layer{{Path: path, Type: m.kind}}, layersBelow(m, left)...)
}

// mountOfPath returns the mount that a path is on. It opens nothing that waits.
func mountOfPath(path string) (mount, bool) {
	if !filepath.IsAbs(path) {
		return mount{}, false
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return mount{}, false
	}
	defer unix.Close(fd)
	return mountOf("self", fd)
}

// deviceLayers follows a block device to the devices that it is made of, and a
// loop device to its file.
func deviceLayers(link string, left int) []Layer {
	dir, err := filepath.EvalSymlinks(link)
	if err != nil || left <= 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		dir = filepath.Dir(dir)
	}
	name := filepath.Base(dir)
	if file, err := os.ReadFile(filepath.Join(dir, "loop", "backing_file")); err == nil {
		return fileLayers(strings.TrimSuffix(string(file), "\n"), left)
	}
	for _, kind := range []string{"zram", "ram", "nbd", "rbd", "drbd"} {
		if number := strings.TrimPrefix(name, kind); number != name && strings.Trim(number, "0123456789") == "" {
			return []Layer{{Path: "/dev/" + name, Type: kind}}
		}
	}
	slaves, _ := os.ReadDir(filepath.Join(dir, "slaves")) // a disk has none
	var all []Layer
	for _, s := range slaves {
		all = append(all, deviceLayers(filepath.Join(dir, "slaves", s.Name()), left-1)...)
	}
	return all
}
