// gen writes what is generated from the commands: the reference pages in
// docs/reference, the man pages in docs/man and the shell completions in
// completions. With -check it writes nothing and fails where a file differs.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail where a generated file is not up to date")
	flag.Parse()
	log.SetFlags(0)
	if err := run(*check); err != nil {
		log.Fatal("gen: ", err)
	}
}

// folders are generated whole: what is in them and is not generated any more is
// removed.
func folders() []string { return []string{"docs/reference", "docs/man"} }

// completionFiles stand beside code.
func completionFiles() []string {
	return []string{"completions/etcdkit.bash", "completions/_etcdkit", "completions/etcdkit.fish", "completions/etcdkit.ps1"}
}

func run(check bool) error {
	tmp, err := os.MkdirTemp("", "etcdkit-gen-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := generate(tmp); err != nil {
		return err
	}
	if check {
		return compare(tmp)
	}
	for _, old := range append(folders(), completionFiles()...) {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	return os.CopyFS(".", os.DirFS(tmp))
}

// generate writes everything below dir.
func generate(dir string) error {
	for _, sub := range append(folders(), "completions") {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	root := commands.Tree("etcdkit", &cli.Env{})
	root.DisableAutoGenTag = true
	if err := completions(root, dir); err != nil {
		return fmt.Errorf("completions: %w", err)
	}
	// The settings that all commands share stand on the root's page, not on each.
	hideShared(root, true)
	if err := pages(root, dir); err != nil {
		return err
	}
	hideShared(root, false)
	return rootPages(root, dir)
}

func hideShared(root *cobra.Command, hidden bool) {
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = hidden })
}

// header is what all man pages share. They carry a date, reproducible ones this.
func header() *doc.GenManHeader {
	epoch := time.Unix(0, 0).UTC()
	return &doc.GenManHeader{Section: "1", Source: "etcdkit", Manual: "etcdkit", Date: &epoch}
}

func pages(root *cobra.Command, dir string) error {
	if err := doc.GenMarkdownTree(root, filepath.Join(dir, "docs/reference")); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	if err := doc.GenManTree(root, header(), filepath.Join(dir, "docs/man")); err != nil {
		return fmt.Errorf("man pages: %w", err)
	}
	return nil
}

// rootPages writes the root's own pages anew.
func rootPages(root *cobra.Command, dir string) error {
	var reference, man bytes.Buffer
	if err := doc.GenMarkdown(root, &reference); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	h := header()
	h.Title = "ETCDKIT"
	if err := doc.GenMan(root, h, &man); err != nil {
		return fmt.Errorf("man pages: %w", err)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "docs/reference/etcdkit.md"), reference.Bytes(), 0o644),
		os.WriteFile(filepath.Join(dir, "docs/man/etcdkit.1"), man.Bytes(), 0o644),
	)
}

func completions(root *cobra.Command, dir string) error {
	files := completionFiles()
	for i := range files {
		files[i] = filepath.Join(dir, files[i])
	}
	return errors.Join(
		root.GenBashCompletionFileV2(files[0], true),
		root.GenZshCompletionFile(files[1]),
		root.GenFishCompletionFile(files[2], true),
		root.GenPowerShellCompletionFileWithDesc(files[3]),
	)
}

// compare fails where a file below tmp differs from the one in the project, or
// where the project has one that is not generated any more.
func compare(tmp string) error {
	var stale []error
	err := filepath.WalkDir(tmp, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(tmp, path)
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if got, _ := os.ReadFile(name); !bytes.Equal(got, want) {
			stale = append(stale, errors.New(name))
		}
		return nil
	})
	for _, dir := range folders() {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if _, err := os.Stat(filepath.Join(tmp, dir, e.Name())); err != nil {
				stale = append(stale, fmt.Errorf("%s is not generated any more", filepath.Join(dir, e.Name())))
			}
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("not up to date, run \"make gen\":\n%w", errors.Join(stale...))
	}
	return err
}
