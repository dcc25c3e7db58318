// notices writes the licences of all modules that are in the binary, for a
// release: go run ./internal/gen/notices > THIRD_PARTY_NOTICES.md
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

type module struct{ Path, Version, Dir string }

const program = "github.com/etcdkit/etcdkit/cmd/etcdkit"

// systems are those that releases are built for: some modules are in the
// program for one of them only.
func systems() []string {
	return []string{"linux/amd64", "linux/arm64", "linux/ppc64le", "linux/s390x", "darwin/amd64", "darwin/arm64", "windows/amd64"}
}

func main() {
	log.SetFlags(0)
	if err := run(os.Stdout); err != nil {
		log.Fatal("notices: ", err)
	}
}

func run(w io.Writer) error {
	modules, err := linked(program)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Third-party notices\n\netcdkit contains the following modules.\n")
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find the Go standard library: %w", err)
	}
	modules = append(modules, module{Path: "Go standard library", Dir: strings.TrimSpace(string(goroot))})
	for _, m := range modules {
		text, err := licence(m.Dir)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		if kind := kindOf(text); !slices.Contains(permitted(), kind) {
			return fmt.Errorf("%s has a licence that does not go into the program: %s", m.Path, kind)
		}
		fmt.Fprintf(&b, "\n## %s %s\n\n```\n%s\n```\n", m.Path, m.Version, strings.TrimSpace(text))
	}
	_, err = b.WriteTo(w)
	return err
}

// linked returns the modules that pkg is built from on any system, but for its
// own.
func linked(pkg string) ([]module, error) {
	seen := map[string]module{}
	for _, system := range systems() {
		if err := linkedOn(system, pkg, seen); err != nil {
			return nil, fmt.Errorf("list the modules for %s: %w", system, err)
		}
	}
	var all []module
	for _, m := range seen {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func linkedOn(system, pkg string, seen map[string]module) error {
	goos, goarch, _ := strings.Cut(system, "/")
	cmd := exec.Command("go", "list", "-deps", "-json=Module", pkg)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Module *struct {
				module
				Main bool
			}
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.Module != nil && !p.Module.Main {
			seen[p.Module.Path] = p.Module.module
		}
	}
}

// licence returns the texts of a module's licence files. A module below another
// of the same repository may have its licence further up.
func licence(dir string) (string, error) {
	name := regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)
	for range 3 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		var texts []string
		for _, e := range entries {
			if e.IsDir() || !name.MatchString(e.Name()) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return "", err
			}
			texts = append(texts, string(b))
		}
		if len(texts) > 0 {
			return strings.Join(texts, "\n\n"), nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("no licence file found")
}
