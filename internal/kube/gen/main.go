// Command gen writes the table of Kubernetes' built-in resources from the
// source of Kubernetes itself: test/integration/etcd/data.go, which its own
// tests hold against what an API server stores, has each resource's path in
// etcd and the version that is stored; api/discovery/aggregated_v2.json and,
// for the core group, api__v1.json have the names, the kinds and the scopes.
//
// It has a module of its own, so that nothing of Kubernetes enters the
// program's. Only files are read: no package of Kubernetes is built.
//
//	go run . [-check] FILE
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "fail where FILE is out of date, and write nothing")
	flag.Parse()
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(path string, check bool) error {
	if path == "" {
		return errors.New("name the file to write")
	}
	source, version, err := download()
	if err != nil {
		return err
	}
	stored, err := readStorage(filepath.Join(source, "test", "integration", "etcd", "data.go"))
	if err != nil {
		return err
	}
	named, err := readDiscovery(filepath.Join(source, "api", "discovery"))
	if err != nil {
		return err
	}
	table, err := join(stored, named)
	if err != nil {
		return err
	}
	code, err := format.Source(write(version, table))
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(path, code, 0o644)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, code) {
		return errors.Join(err, fmt.Errorf("%s is out of date: run make gen-kube", path))
	}
	return nil
}

// download returns where the module cache has Kubernetes, in the version that
// go.mod names; go.sum holds its content.
func download() (dir, version string, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes").Output()
	if err != nil {
		return "", "", fmt.Errorf("download k8s.io/kubernetes: %w", err)
	}
	var module struct{ Dir, Version string }
	err = json.Unmarshal(out, &module)
	return module.Dir, module.Version, err
}

// groupResource names a resource in its API group.
type groupResource struct{ group, resource string }

// storage is what data.go says about a resource.
type storage struct {
	path   string // below the etcd prefix
	stored string // the version that is stored
}

// readStorage reads the map of GetEtcdStorageDataForNamespaceServedAt.
// Entries whose objects are stored as those of another group are left out:
// events.k8s.io has the core group's events.
func readStorage(path string) (map[groupResource]storage, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	all := make(map[groupResource]storage)
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		names, ok := call(pair.Key, "gvr")
		value, isEntry := pair.Value.(*ast.CompositeLit)
		if !ok || !isEntry {
			return true
		}
		gr := groupResource{names[0], names[2]}
		entry, group := readEntry(value, names)
		if group == gr.group && entry.path != "" {
			all[gr] = entry
		}
		return true
	})
	if len(all) < 50 {
		return nil, fmt.Errorf("%s: only %d resources found: its form has changed", path, len(all))
	}
	return all, nil
}

// readEntry reads one entry, and the group whose objects are stored.
func readEntry(value *ast.CompositeLit, names []string) (s storage, group string) {
	s, group = storage{stored: names[1]}, names[0]
	for _, e := range value.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch field.Key.(*ast.Ident).Name {
		case "ExpectedEtcdPath":
			s.path = directory(field.Value, names[2])
		case "ExpectedGVK":
			if gvk, ok := call(field.Value, "gvkP"); ok {
				group, s.stored = gvk[0], gvk[1]
			}
		}
	}
	return s, group
}

// call returns the three texts of a call of one of data.go's helpers.
func call(e ast.Expr, name string) ([]string, bool) {
	c, ok := e.(*ast.CallExpr)
	if !ok || len(c.Args) != 3 {
		return nil, false
	}
	if f, ok := c.Fun.(*ast.Ident); !ok || f.Name != name {
		return nil, false
	}
	var texts []string
	for _, arg := range c.Args {
		texts = append(texts, text(arg))
	}
	return texts, true
}

// text returns the text at the beginning of an expression.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return text(e.X)
	}
	return ""
}

// directory is what follows the prefix in a path, without namespace and name.
func directory(e ast.Expr, resource string) string {
	path, ok := strings.CutPrefix(text(e), "/registry/")
	if !ok {
		return ""
	}
	if dir, ok := strings.CutSuffix(path, "/"); ok { // the namespace follows
		return dir
	}
	return path[:strings.LastIndex(path, "/")] // a name follows
}

// names is what the discovery says about a resource.
type names struct {
	Resource         string
	SingularResource string
	ShortNames       []string
	Scope            string
	ResponseKind     struct{ Kind string }
	versions         []string
}

// readDiscovery reads what an API server tells about its resources.
func readDiscovery(dir string) (map[groupResource]*names, error) {
	all := make(map[groupResource]*names)
	var core struct {
		Resources []struct {
			Name, SingularName, Kind string
			Namespaced               bool
			ShortNames               []string
		}
	}
	if err := readJSON(filepath.Join(dir, "api__v1.json"), &core); err != nil {
		return nil, err
	}
	for _, r := range core.Resources {
		n := &names{Resource: r.Name, SingularResource: r.SingularName, ShortNames: r.ShortNames, Scope: "Cluster", versions: []string{"v1"}}
		if n.ResponseKind.Kind = r.Kind; r.Namespaced {
			n.Scope = "Namespaced"
		}
		all[groupResource{"", r.Name}] = n
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version   string
				Resources []names
			}
		}
	}
	if err := readJSON(filepath.Join(dir, "aggregated_v2.json"), &list); err != nil {
		return nil, err
	}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				gr := groupResource{group.Metadata.Name, r.Resource}
				if all[gr] == nil {
					all[gr] = &r
				}
				all[gr].versions = append(all[gr].versions, version.Version)
			}
		}
	}
	return all, nil
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// row is a row of the table.
type row struct {
	groupResource
	storage
	kind, singular string
	shortNames     []string
	namespaced     bool
	versions       []string
}

// join makes the rows, in order of path. The custom resources of Kubernetes'
// own tests are in no discovery.
func join(stored map[groupResource]storage, named map[groupResource]*names) ([]row, error) {
	var table []row
	for gr, s := range stored {
		n := named[gr]
		if n == nil && strings.HasSuffix(gr.group, ".com") {
			continue
		}
		if n == nil {
			return nil, fmt.Errorf("%s of %q is stored, and not in the discovery", gr.resource, gr.group)
		}
		table = append(table, row{
			groupResource: gr, storage: s, kind: n.ResponseKind.Kind, singular: n.SingularResource,
			shortNames: n.ShortNames, namespaced: n.Scope == "Namespaced", versions: n.versions,
		})
	}
	table = append(table, removed()...)
	slices.SortFunc(table, func(a, b row) int { return strings.Compare(a.path, b.path) })
	for i := 1; i < len(table); i++ {
		if table[i].path == table[i-1].path {
			return nil, fmt.Errorf("two resources are stored under %s", table[i].path)
		}
	}
	return table, nil
}

// removed lists what older API servers stored: a cluster that was upgraded
// may hold it still.
func removed() []row {
	old := func(group, resource, path, stored, kind string, namespaced bool) row {
		return row{
			groupResource: groupResource{group, resource}, storage: storage{path: path, stored: stored},
			kind: kind, singular: strings.ToLower(kind), namespaced: namespaced,
		}
	}
	return []row{
		old("auditregistration.k8s.io", "auditsinks", "auditsinks", "v1alpha1", "AuditSink", false),                               // until 1.18
		old("networking.k8s.io", "clustercidrs", "clustercidrs", "v1alpha1", "ClusterCIDR", false),                                // until 1.28
		old("policy", "podsecuritypolicies", "podsecuritypolicy", "v1beta1", "PodSecurityPolicy", false),                          // until 1.24
		old("resource.k8s.io", "podschedulingcontexts", "podschedulingcontexts", "v1alpha3", "PodSchedulingContext", true),        // until 1.31
		old("resource.k8s.io", "podschedulings", "podschedulings", "v1alpha1", "PodScheduling", true),                             // until 1.26
		old("resource.k8s.io", "resourceclaimparameters", "resourceclaimparameters", "v1alpha2", "ResourceClaimParameters", true), // until 1.30
		old("resource.k8s.io", "resourceclasses", "resourceclasses", "v1alpha2", "ResourceClass", false),                          // until 1.30
		old("resource.k8s.io", "resourceclassparameters", "resourceclassparameters", "v1alpha2", "ResourceClassParameters", true), // until 1.30
		old("settings.k8s.io", "podpresets", "podpresets", "v1alpha1", "PodPreset", true),                                         // until 1.19
	}
}

// write writes the table, and the two look-ups as switches: a map would be
// built at every start of the program.
func write(version string, table []row) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated from k8s.io/kubernetes %s by internal/kube/gen; DO NOT EDIT.\n\npackage kube\n\n", version)
	fmt.Fprintf(&b, "// builtIns lists the resources that API servers store themselves, in order of path.\n")
	fmt.Fprintf(&b, "var builtIns = [...]Resource{\n")
	for _, r := range table {
		fmt.Fprintf(&b, "{GroupResource: GroupResource{Group: %q, Resource: %q}, Kind: %q, Singular: %q, ", r.group, r.resource, r.kind, r.singular)
		list(&b, "ShortNames", r.shortNames)
		if r.namespaced {
			fmt.Fprintf(&b, "Namespaced: true, ")
		}
		fmt.Fprintf(&b, "Path: %q, Stored: %q, ", r.path, r.stored)
		list(&b, "Served", r.versions)
		fmt.Fprintf(&b, "},\n")
	}
	fmt.Fprintf(&b, "}\n\n// builtInAt returns the place in builtIns of what is stored under path, -1 for anything else.\n")
	fmt.Fprintf(&b, "func builtInAt(path string) int {\nswitch path {\n")
	for i, r := range table {
		fmt.Fprintf(&b, "case %q:\nreturn %d\n", r.path, i)
	}
	fmt.Fprintf(&b, "}\nreturn -1\n}\n\n// builtInNamed returns the place in builtIns of a resource, -1 for anything else.\n")
	fmt.Fprintf(&b, "func builtInNamed(gr GroupResource) int {\nswitch gr {\n")
	groups := []string{}
	for i, r := range table {
		fmt.Fprintf(&b, "case GroupResource{Group: %q, Resource: %q}:\nreturn %d\n", r.group, r.resource, i)
		groups = append(groups, strconv.Quote(r.group))
	}
	slices.Sort(groups)
	fmt.Fprintf(&b, "}\nreturn -1\n}\n\n// isBuiltInGroup reports whether group has resources of builtIns.\n")
	fmt.Fprintf(&b, "func isBuiltInGroup(group string) bool {\nswitch group {\ncase %s:\nreturn true\n}\nreturn false\n}\n", strings.Join(slices.Compact(groups), ", "))
	return b.Bytes()
}

func list(b *bytes.Buffer, field string, texts []string) {
	if len(texts) > 0 {
		fmt.Fprintf(b, "%s: %#v, ", field, texts)
	}
}
