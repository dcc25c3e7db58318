package kube

// OpenShift's own API servers keep their objects under a prefix of their own,
// by names that are not those of the API. Those that its documentation says are
// encrypted are known here.
const (
	openshiftOAuth  = "oauth.openshift.io"
	openshiftRoutes = "route.openshift.io"
)

// openshiftStored maps the first parts of a key under OpenShift's prefix to the
// resource that the API knows. It also returns how many parts that took, 0 for
// a key that is stored under its own name.
func openshiftStored(prefix string, parts []string) (gr GroupResource, taken int) {
	switch {
	case prefix != openshiftPrefix:
		return GroupResource{}, 0
	case parts[0] == "routes":
		return GroupResource{Group: openshiftRoutes, Resource: "routes"}, 1
	case parts[0] == "oauth" && len(parts) > 2:
		return GroupResource{Group: openshiftOAuth, Resource: "oauth" + parts[1]}, 2
	}
	return GroupResource{}, 0
}

// openshiftDir is the inverse of openshiftStored, "" for what is stored under
// its own name.
func openshiftDir(prefix string, gr GroupResource) string {
	const oauth = "oauth"
	switch {
	case prefix != openshiftPrefix:
		return ""
	case gr == GroupResource{Group: openshiftRoutes, Resource: "routes"}:
		return "routes"
	case gr.Group == openshiftOAuth && len(gr.Resource) > len(oauth) && gr.Resource[:len(oauth)] == oauth:
		return oauth + "/" + gr.Resource[len(oauth):]
	}
	return ""
}

// IsOpenShift reports whether a prefix is one under which OpenShift keeps its objects.
func IsOpenShift(prefix string) bool { return prefix == openshiftPrefix || prefix == "/kubernetes.io" }
