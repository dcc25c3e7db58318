package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The modules that the linker has put in, as against those that the notices
// were made from.
func TestEveryLinkedModuleHasItsNotice(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("NOT TESTED: the go command is not here")
	}
	binary := filepath.Join(t.TempDir(), "etcdkit")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", binary, program).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil || len(info.Deps) < 50 {
		t.Fatalf("the program does not know what it is built from: %v, %v", info, err)
	}
	var notices bytes.Buffer
	if err := run(&notices); err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if !strings.Contains(notices.String(), "\n## "+m.Path+" "+m.Version+"\n") {
			t.Errorf("no notice for %s %s", m.Path, m.Version)
		}
	}
	for _, m := range []string{"Go standard library", "github.com/inconshreveable/mousetrap"} { // the latter on Windows only
		if !strings.Contains(notices.String(), "\n## "+m+" ") {
			t.Errorf("no notice for %s", m)
		}
	}
}

func TestReleasesAreBuiltForTheSystemsOfTheNotices(t *testing.T) {
	raw, err := os.ReadFile("../../../goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^ +- (linux|darwin|windows)_(\w+)$`).FindAllStringSubmatch(string(raw), -1) {
		targets = append(targets, m[1]+"/"+m[2])
	}
	if !slices.Equal(targets, systems()) {
		t.Errorf("releases are for %q, the notices for %q", targets, systems())
	}
}

func TestALicenceIsKnownByItsText(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"Apache":                  {"\n   Apache License\n   Version 2.0, January 2004\n", "Apache-2.0"},
		"BSD":                     {"Redistribution and use in source and\nbinary forms, with or without", "BSD"},
		"MIT":                     {"Permission is hereby granted, free of charge, to any person obtaining a copy\nof this software and", "MIT"},
		"ISC":                     {"Permission to use, copy, modify, and/or distribute this software for any purpose with", "ISC"},
		"MPL, which names others": {"Mozilla Public License Version 2.0\n ... means either the GNU General Public License, Version 2.0", "MPL-2.0"},
		"GPL":                     {"  GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007", "GPL"},
		"AGPL":                    {"  GNU AFFERO GENERAL PUBLIC LICENSE\n  Version 3", "AGPL"},
		"a mild one beside GPL":   {"Redistribution and use in source and binary forms\n\nGNU GENERAL PUBLIC LICENSE", "GPL"},
		"something else":          {"All rights reserved.", unknown},
		"nothing":                 {"", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			got := kindOf(tc.text)
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if bad := strings.HasSuffix(got, "GPL") || got == unknown; bad == slices.Contains(permitted(), got) {
				t.Errorf("%s may be linked: %v", got, !bad)
			}
		})
	}
}

func TestAModuleWithoutALicenceIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if text, err := licence(dir); err == nil {
		t.Errorf("got %q", text)
	}
}
