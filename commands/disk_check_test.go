package commands_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
)

// diskCheck runs etcdkit disk check with few small writes.
func diskCheck(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	env := cli.System()
	var stdout, stderr strings.Builder
	env.In, env.Out, env.Err, env.Live, env.OutTTY, env.Environ = strings.NewReader(""), &stdout, &stderr, false, false, nil
	args = append([]string{"etcdkit", "disk", "check", "--size", "276000", "--rounds", "1", "--skip-bandwidth", "--force"}, args...)
	code = commands.Main(t.Context(), args, env)
	return code, stdout.String(), stderr.String()
}

func TestDiskCheckJudges(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"limits that any disk meets":        {[]string{"--require", "p99=1h,iops=0.01"}, 0, "verdict: ok", ""},
		"limits that no disk meets":         {[]string{"--require", "p99=1ns"}, 3, "verdict: slow", "disk is too slow: p99 "},
		"a limit on what was not measured":  {[]string{"--require", "read=1GB"}, 4, "", "read is required"},
		"a limit that is none":              {[]string{"--require", "p99=soon"}, 2, "", `"soon" is no time`},
		"an unknown pattern":                {[]string{"--pattern", "vinyl"}, 2, "", "no pattern"},
		"a size that is none":               {[]string{"--size", "huge"}, 2, "", "is no size"},
		"a folder that does not exist":      {[]string{"/does/not/exist"}, 4, "", "hint: create the folder first"},
		"a format that it does not have":    {[]string{"-w", "protobuf"}, 2, "", "this command has"},
		"fewer writes than a p99 is due to": {[]string{"--size", "23000"}, 4, "", "too few to judge by"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := tc.args
			if !strings.HasPrefix(args[len(args)-1], "/") {
				args = append(args, dir)
			}
			code, out, errs := diskCheck(t, args...)
			if code != tc.code || !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.err) {
				t.Errorf("exit code %d, want %d;\n%s\n%s", code, tc.code, out, errs)
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

func TestDiskCheckRefusesMemory(t *testing.T) {
	code, out, errs := diskCheck(t, memoryDir(t))
	if code != 4 || out != "" || !strings.Contains(errs, "tmpfs") {
		t.Errorf("exit code %d, want 4 and tmpfs named;\n%s\n%s", code, out, errs)
	}
}

// memoryDir returns a folder that is memory. Every Linux has some, though a
// container need not have /dev/shm.
func memoryDir(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Skip("filesystems in memory are told by Linux only")
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[2] != "tmpfs" {
			continue
		}
		if info, err := os.Stat(fields[1]); err == nil && info.IsDir() {
			return fields[1]
		}
	}
	t.Fatal("no tmpfs is mounted anywhere")
	return ""
}

func TestDiskCheckInJSON(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := diskCheck(t, dir, "--require", "p99=1h", "-w", "json")
	var got struct {
		Path, Verdict, Class string
		Filesystem           struct{ Type, MountPoint string }
		Fsync                struct{ Count int }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s\n%s", code, err, out, errs) // notes about other etcds of this machine may be in errs
	}
	if got.Path != dir || got.Verdict != "ok" || got.Class == "" || got.Fsync.Count != 120 {
		t.Errorf("got %+v", got)
	}
	if runtime.GOOS == "linux" && !strings.HasPrefix(dir, filepath.Clean(got.Filesystem.MountPoint)) {
		t.Errorf("%s is not below mount point %q", dir, got.Filesystem.MountPoint)
	}
}

func TestDiskCheckKeepsAPageAndComparesRuns(t *testing.T) {
	dir, files := t.TempDir(), t.TempDir()
	old, page := filepath.Join(files, "old.json"), filepath.Join(files, "page.html")
	_, out, _ := diskCheck(t, dir, "--require", "p99=1h", "-w", "json")
	if err := os.WriteFile(old, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := diskCheck(t, dir, "--require", "p99=1h", "--report", page, "--compare", old)
	if code != 0 || !strings.Contains(out, "compared with "+dir) {
		t.Errorf("exit code %d, want 0 and a comparison;\n%s\n%s", code, out, errs)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "</html>") {
		t.Errorf("the page is not whole: %v", err)
	}
	_, out, _ = diskCheck(t, dir, "--require", "p99=1h", "-w", "fio-json")
	var fio struct {
		Jobs []struct{ Jobname string }
	}
	if err := json.Unmarshal([]byte(out), &fio); err != nil || len(fio.Jobs) != 1 {
		t.Errorf("%v, no job as fio has it in\n%s", err, out)
	}
}

func TestDiskCheckRefusesFilesItCannotUse(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte("p99 was fine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"a page in a folder that is not there": {"--report", filepath.Join(dir, "no", "page.html")},
		"an old run that is not there":         {"--compare", filepath.Join(dir, "no.json")},
		"an old run that is none":              {"--compare", text},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := diskCheck(t, append([]string{dir}, args...)...)
			if code != 2 || out != "" || !strings.Contains(errs, args[0]) {
				t.Errorf("exit code %d, want 2 and nothing measured;\n%s\n%s", code, out, errs)
			}
		})
	}
}
