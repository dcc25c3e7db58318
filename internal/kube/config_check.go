package kube

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// checkResource refuses the resource names that the API server refuses.
func checkResource(n *yaml.Node, name string, gr GroupResource) error {
	switch {
	case name == "":
		return problem(n, "a resource without a name")
	case name == "*":
		return problem(n, `use "*.*" for all resources, or "*." for those of the core group`)
	case name != strings.ToLower(name):
		return problem(n, "resource names have no capital letters")
	case gr.Group == "*" && gr.Resource != "*":
		return problem(n, "one resource in all groups is not possible")
	case gr.Group == "events.k8s.io" || gr.Group == "extensions":
		return problem(n, "group %s stores nothing, name the group that does", gr.Group)
	case slices.Contains([]string{"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"}, name):
		return problem(n, "%s is no resource of the API", name)
	}
	return nil
}

// checkOverlap refuses resources of one rule that name the same objects.
func checkOverlap(n *yaml.Node, resources []GroupResource) error {
	all := GroupResource{Group: "*", Resource: "*"}
	for i, a := range resources {
		for _, b := range resources[:i] {
			sameGroup := a.Group == b.Group
			if a == b || a == all || b == all || sameGroup && (a.Resource == "*" || b.Resource == "*") {
				return problem(n, "resources %s and %s overlap", shown(b.String()), shown(a.String()))
			}
		}
	}
	return nil
}

// check refuses rules that a wildcard of an earlier rule hides, and plugins
// that share a name.
func (c *EncryptionConfig) check() error {
	wild := make(map[GroupResource]int)
	for _, rule := range c.Rules {
		for _, gr := range rule.Resources {
			if by, hidden := hides(wild, gr, rule.Line); hidden {
				return &ConfigError{
					Line:    rule.Line,
					Problem: "resource " + shown(gr.String()) + " is hidden by the earlier rule for " + shown(by.String()),
				}
			}
			if gr.Resource == "*" {
				wild[gr] = rule.Line
			}
		}
	}
	return c.checkPlugins()
}

// hides returns the wildcard, of those seen with the lines of their rules, that
// covers a resource of the rule at line.
func hides(wild map[GroupResource]int, gr GroupResource, line int) (by GroupResource, hidden bool) {
	for _, by := range []GroupResource{{Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if earlier, ok := wild[by]; ok && earlier != line {
			return by, true
		}
	}
	return GroupResource{}, false
}

func (c *EncryptionConfig) checkPlugins() error {
	names := make(map[string]bool)
	for _, rule := range c.Rules {
		for _, p := range rule.Providers {
			if p.KMS == nil {
				continue
			}
			if names[p.KMS.Name] {
				return &ConfigError{Line: rule.Line, Problem: "two kms providers are named " + shown(p.KMS.Name)}
			}
			names[p.KMS.Name] = true
		}
	}
	return nil
}
