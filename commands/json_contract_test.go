package commands_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// Every field that the page on JSON promises of a command is there.
func TestFieldsOfTheJSONPageAreThere(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := etcdtest.Start(t, embedded.Options{}).Endpoints()[0]
	dir := t.TempDir()
	repo, file := filepath.Join(dir, "repo")+"/", "../snapshot/testdata/kubernetes.db"
	for _, line := range []string{"snapshot save --compress zstd " + repo, "snapshot verify --latest " + repo} {
		code, _, stderr := run(t, append([]string{"etcdkit", "--endpoints", endpoint}, strings.Fields(line)...)...)
		if code != 0 {
			t.Fatalf("%s: %s", line, stderr)
		}
	}
	if code, _, stderr := run(t, "etcdkit", "snapshot", "restore", "--data-dir", dir+"/old", file); code != 0 {
		t.Fatal(stderr)
	}
	for command, tc := range map[string]struct {
		args   string
		absent []string // what this call has no reason to show
	}{
		"health":               {"health --upgrade-to 3.7 --endpoints 127.0.0.1:1," + endpoint, nil},
		"check consistency":    {"check consistency", []string{"ahead"}},
		"defrag-all":           {"defrag-all --dry-run", []string{"ok", "tookSeconds"}},
		"snapshot show":        {"snapshot show " + repo + " latest", []string{"recipients", "revision", "keys"}},
		"snapshot list":        {"snapshot list " + repo, nil},
		"snapshot verify":      {"snapshot verify " + repo + " --latest", nil},
		"snapshot age":         {"snapshot age " + repo, nil},
		"snapshot prune":       {"snapshot prune --dry-run --keep-last 1 " + repo, []string{"key", "since", "reason", "removed", "kept", "notes"}},
		"snapshot copy":        {"snapshot copy " + repo + " " + repo + "copy/", nil},
		"snapshot check-store": {"snapshot check-store " + repo, nil},
		"snapshot restore":     {"snapshot restore --data-dir " + dir + "/new " + file, []string{"plan", "member", "restore", "start"}},
		"snapshot status":      {"snapshot status " + file, nil},
		"db info":              {"db info " + file, nil},
		"db keys":              {"db keys " + file, nil},
		"db du":                {"db du " + file, nil},
		"db compare":           {"db compare " + dir + "/old " + dir + "/old", nil},
		"config view":          {"config view", nil},
		"version":              {"version", nil},
	} {
		t.Run(command, func(t *testing.T) {
			_, stdout, stderr := run(t, append([]string{"etcdkit", "--endpoints", endpoint, "-w", "json"}, strings.Fields(tc.args)...)...)
			var got any
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("%v\n%s%s", err, stdout, stderr)
			}
			names := fieldNames(got, nil)
			for _, field := range promised(t, string(raw), command) {
				if !slices.Contains(names, field) && !slices.Contains(tc.absent, field) {
					t.Errorf("no %q in\n%s", field, stdout)
				}
			}
		})
	}
}

// promised returns the fields in the row of a command.
func promised(t *testing.T, page, command string) (fields []string) {
	t.Helper()
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || !strings.Contains(cells[1], "`"+command+"`") {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-zA-Z0-9]+)(\\[\\])?`").FindAllStringSubmatch(cells[2], -1) {
			fields = append(fields, m[1])
		}
	}
	if fields == nil {
		t.Errorf("the page says nothing of %s", command)
	}
	return fields
}

// fieldNames returns the names of the fields in v and below.
func fieldNames(v any, names []string) []string {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			names = fieldNames(e, names)
		}
	case map[string]any:
		for name, e := range v {
			names = fieldNames(e, append(names, name))
		}
	}
	return names
}
