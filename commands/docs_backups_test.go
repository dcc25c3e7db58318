package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// example returns the block of docs/backups.md that follows a marker.
func example(t *testing.T, marker string) string {
	t.Helper()
	raw, err := os.ReadFile("../docs/backups.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)<!-- " + regexp.QuoteMeta(marker) + " -->\n```[a-z]*\n(.*?)```").FindSubmatch(raw)
	if found == nil {
		t.Fatalf("docs/backups.md has no block %q", marker)
	}
	return string(found[1])
}

func TestTheDocumentedUnitsAreThoseOfThePackages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"etcdkit-backup.service", "etcdkit-backup.timer"} {
		packaged, err := os.ReadFile("../packaging/systemd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(string(packaged), "/usr/bin/etcdkit", "/usr/local/bin/etcdkit")
		if got := example(t, "unit: "+name); got != want {
			t.Errorf("docs/backups.md has\n%s\npackaging/systemd/%s is\n%s", got, name, want)
		}
	}
}

func TestTheDocumentedUnitsAreValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	dir := t.TempDir()
	var units []string
	for _, name := range []string{"etcdkit-backup.service", "etcdkit-backup.timer"} {
		// The program need not be installed where the test runs.
		text := strings.ReplaceAll(example(t, "unit: "+name), "/usr/local/bin/etcdkit", "/bin/true")
		unit := filepath.Join(dir, name)
		if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		units = append(units, unit)
	}
	out, err := exec.CommandContext(t.Context(), analyze, append([]string{"verify"}, units...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// The manifest's fields are checked by name, for what a typing error would
// make of them.
func TestTheDocumentedCronJobParses(t *testing.T) {
	t.Parallel()
	type container struct {
		Name    string
		Image   string
		Command []string
		Env     []struct{ Name, Value string }
		EnvFrom []struct {
			SecretRef struct{ Name string } `yaml:"secretRef"`
		} `yaml:"envFrom"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	type pod struct {
		RestartPolicy string            `yaml:"restartPolicy"`
		HostNetwork   bool              `yaml:"hostNetwork"`
		NodeSelector  map[string]string `yaml:"nodeSelector"`
		Tolerations   []struct{ Key, Effect string }
		Containers    []container
		Volumes       []struct {
			Name     string
			HostPath struct{ Path, Type string } `yaml:"hostPath"`
		}
	}
	var job struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name, Namespace string }
		Spec       struct {
			Schedule                string
			ConcurrencyPolicy       string `yaml:"concurrencyPolicy"`
			StartingDeadlineSeconds int    `yaml:"startingDeadlineSeconds"`
			JobTemplate             struct {
				Spec struct {
					BackoffLimit          int `yaml:"backoffLimit"`
					ActiveDeadlineSeconds int `yaml:"activeDeadlineSeconds"`
					Template              struct{ Spec pod }
				}
			} `yaml:"jobTemplate"`
		}
	}
	d := yaml.NewDecoder(strings.NewReader(example(t, "manifest: cronjob")))
	d.KnownFields(true)
	if err := d.Decode(&job); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec.JobTemplate.Spec.Template.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "CronJob" || len(spec.Containers) != 1 || len(spec.Volumes) != len(spec.Containers[0].VolumeMounts) {
		t.Errorf("the manifest is not whole: %+v", job)
		return
	}
	parses(t, spec.Containers[0].Command)
}

// parses fails if etcdkit does not know a documented command line.
func parses(t *testing.T, line []string) {
	t.Helper()
	if code, _, stderr := run(t, append(append([]string{"etcdkit"}, line[1:]...), "--help")...); code != 0 || filepath.Base(line[0]) != "etcdkit" {
		t.Errorf("%q: exit code %d, %s", line, code, stderr)
	}
}

func TestTheDocumentedCommandLinesParse(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/backups.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^(?:    |ExecStart=|.*; )([/\w]*etcdkit snapshot [^\n|>;]*)`).FindAllStringSubmatch(string(raw), -1)
	if len(lines) < 5 {
		t.Fatalf("found only %q", lines)
	}
	for _, line := range lines {
		parses(t, strings.Fields(line[1]))
	}
}
