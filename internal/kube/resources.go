package kube

import (
	"slices"
	"strings"
)

// Resource is a resource that API servers define themselves, as the source of
// Kubernetes describes it.
type Resource struct {
	GroupResource
	Kind       string
	Singular   string
	ShortNames []string
	Namespaced bool
	Path       string   // where its objects are stored, below the etcd prefix: "services/specs"
	Stored     string   // the version in which they are stored
	Served     []string // the versions that the API serves, the preferred one first; none for a removed resource
}

// BuiltIns returns all resources that API servers define themselves, in order
// of path, with those that older ones had.
func BuiltIns() []Resource { return slices.Clone(builtIns[:]) }

// BuiltIn returns the description of a resource, false for one that comes from
// a CustomResourceDefinition or an aggregated API server.
func BuiltIn(gr GroupResource) (Resource, bool) {
	if i := builtInNamed(gr); i >= 0 {
		return builtIns[i], true
	}
	return Resource{}, false
}

// FindBuiltIn finds a resource by what people call it: its name, its singular,
// a short name or its kind, in any case, and followed by its group or not. The
// core group's comes first where several groups have the name.
func FindBuiltIn(name string) (Resource, bool) {
	name, group, inGroup := strings.Cut(strings.ToLower(name), ".")
	found := -1
	for i := range builtIns {
		r := &builtIns[i]
		named := name == r.Resource || name == r.Singular || name == strings.ToLower(r.Kind) || slices.Contains(r.ShortNames, name)
		if named && (!inGroup || group == r.Group) && (found < 0 || r.Group == "") {
			found = i
		}
	}
	if found < 0 {
		return Resource{}, false
	}
	return builtIns[found], true
}

// storedAt returns the resource whose objects are stored below the first parts
// of an etcd key, and how many parts that takes. What is not listed is taken
// as a resource of the core group.
func storedAt(parts []string) (gr GroupResource, taken int) {
	if i := builtInAt(parts[0]); i >= 0 {
		return builtIns[i].GroupResource, 1
	}
	if len(parts) > 1 && parts[0] == "services" {
		if i := builtInAt(parts[0] + "/" + parts[1]); i >= 0 {
			return builtIns[i].GroupResource, 2
		}
	}
	return GroupResource{Resource: parts[0]}, 1
}

// Bookkeeping reports whether what is stored as gr belongs to the API server
// itself: the addresses it gave away and who serves. It is no resource of the
// API, and holds nothing of a user.
func Bookkeeping(gr GroupResource) bool {
	if gr.Group != "" {
		return false
	}
	switch gr.Resource {
	case "ranges", "masterleases", "peerserverleases":
		return true
	}
	return false
}

// builtIn reports whether group belongs to Kubernetes itself. Those groups
// are reserved, custom resources cannot take them without approval.
func builtIn(group string) bool {
	return isBuiltInGroup(group) || strings.HasSuffix(group, ".k8s.io")
}

// wellKnown reports whether dir is the first part of keys that every cluster
// has, so that finding it tells where Kubernetes' keys begin.
func wellKnown(dir string) bool {
	switch dir {
	case "secrets", "configmaps", "pods", "namespaces", "serviceaccounts", "minions", "events",
		"deployments", "replicasets", "daemonsets", "leases", "endpointslices", "clusterroles",
		"clusterrolebindings", "priorityclasses", "ranges", "masterleases", "services",
		"routes", "oauth", "imagestreams", "deploymentconfigs", "rangeallocations": // OpenShift's
		return true
	}
	return false
}
