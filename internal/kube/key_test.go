package kube

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestParseKey(t *testing.T) {
	for name, tc := range map[string]struct {
		prefix, key string
		want        Key
		bad         bool
	}{
		"a namespaced object":            {key: "/registry/secrets/ns/name", want: Key{Resource: "secrets", Namespace: "ns", Name: "name"}},
		"an object without namespace":    {key: "/registry/namespaces/default", want: Key{Resource: "namespaces", Name: "default"}},
		"a node is stored as minion":     {key: "/registry/minions/n1", want: Key{Resource: "nodes", Name: "n1"}},
		"a service has specs":            {key: "/registry/services/specs/ns/web", want: Key{Resource: "services", Namespace: "ns", Name: "web"}},
		"endpoints too":                  {key: "/registry/services/endpoints/ns/web", want: Key{Resource: "endpoints", Namespace: "ns", Name: "web"}},
		"a built-in group is not stored": {key: "/registry/deployments/ns/web", want: Key{Group: "apps", Resource: "deployments", Namespace: "ns", Name: "web"}},
		"a custom resource":              {key: "/registry/example.com/widgets/ns/w", want: Key{Group: "example.com", Resource: "widgets", Namespace: "ns", Name: "w"}},
		"a custom one without namespace": {key: "/registry/example.com/widgets/w", want: Key{Group: "example.com", Resource: "widgets", Name: "w"}},
		"a name with a colon":            {key: "/registry/clusterroles/system:node", want: Key{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "system:node"}},
		"another prefix":                 {prefix: "/a/b", key: "/a/b/secrets/ns/name", want: Key{Resource: "secrets", Namespace: "ns", Name: "name"}},
		"a prefix with a dot":            {prefix: "/kubernetes.io", key: "/kubernetes.io/secrets/ns/name", want: Key{Resource: "secrets", Namespace: "ns", Name: "name"}},
		"a token of OpenShift's":         {prefix: "/openshift.io", key: "/openshift.io/oauth/accesstokens/sha256~x", want: Key{Group: "oauth.openshift.io", Resource: "oauthaccesstokens", Name: "sha256~x"}},
		"a route of OpenShift's":         {prefix: "/openshift.io", key: "/openshift.io/routes/ns/r", want: Key{Group: "route.openshift.io", Resource: "routes", Namespace: "ns", Name: "r"}},
		"another object of OpenShift's":  {prefix: "/openshift.io", key: "/openshift.io/secrets/ns/s", want: Key{Resource: "secrets", Namespace: "ns", Name: "s"}},
		"a foreign key":                  {key: "/other/secrets/ns/name", bad: true},
		"a longer prefix":                {key: "/registry2/secrets/ns/name", bad: true},
		"no name":                        {key: "/registry/secrets", bad: true},
		"an empty part":                  {key: "/registry/secrets//name", bad: true},
		"too deep":                       {key: "/registry/secrets/a/b/c", bad: true},
		"the compaction record":          {key: "compact_rev_key", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.prefix == "" {
				tc.prefix = "/registry"
			}
			if !tc.bad {
				tc.want.Prefix = tc.prefix
			}
			got, ok := ParseKey(tc.prefix, []byte(tc.key))
			if got != tc.want || ok == tc.bad {
				t.Errorf("got %+v, %v; want %+v", got, ok, tc.want)
			}
		})
	}
}

func TestStoragePrefixesOfOpenShift(t *testing.T) {
	for gr, want := range map[GroupResource]string{
		{Group: "oauth.openshift.io", Resource: "oauthaccesstokens"}:    "/openshift.io/oauth/accesstokens/",
		{Group: "oauth.openshift.io", Resource: "oauthauthorizetokens"}: "/openshift.io/oauth/authorizetokens/",
		{Group: "route.openshift.io", Resource: "routes"}:               "/openshift.io/routes/",
		{Resource: "secrets"}: "/openshift.io/secrets/",
	} {
		if got := StoragePrefixes("/openshift.io", gr); len(got) != 1 || got[0] != want {
			t.Errorf("%s is looked for below %q, want %q", gr, got, want)
		}
	}
}

func TestStoragePrefixesCoverWhatIsParsed(t *testing.T) {
	for _, key := range []string{
		"/registry/secrets/ns/n", "/registry/minions/n", "/registry/services/specs/ns/n", "/registry/services/endpoints/ns/n",
		"/registry/deployments/ns/n", "/registry/ingress/ns/n", "/registry/example.com/widgets/ns/n",
		"/registry/apiregistration.k8s.io/apiservices/v1.apps", "/registry/controllers/ns/n",
	} {
		k, ok := ParseKey("/registry", []byte(key))
		gr := GroupResource{Group: k.Group, Resource: k.Resource}
		covered := slices.ContainsFunc(StoragePrefixes("/registry", gr), func(p string) bool {
			return len(key) > len(p) && key[:len(p)] == p
		})
		if !ok || !covered {
			t.Errorf("%s is %s, looked for below %q", key, k.GroupResource(), StoragePrefixes("/registry", gr))
		}
	}
}

func TestFinder(t *testing.T) {
	const pod = "k8s\x00pod"
	for name, tc := range map[string]struct {
		pairs []string // key, value, ...
		want  []string
	}{
		"one storage value is enough":  {[]string{"/registry/secrets/a/b", pod}, []string{"/registry"}},
		"names without values are not": {[]string{"/x/y/pods/a/b", "", "/x/y/namespaces/a", ""}, nil},
		"one name alone is not":        {[]string{"/app/secrets/db", "hunter2", "/app/secrets/mail", "x"}, nil},
		"two control planes":           {[]string{"/t1/pods/a/b", pod, "/t2/pods/a/b", pod}, []string{"/t1", "/t2"}},
		"a custom resource named secrets": {
			[]string{"/registry/pods/a/b", pod, "/registry/vault.io/secrets/a/b", `{"kind":"Secret","apiVersion":"vault.io/v1"}`, "/registry/vault.io/pods/a/b", "k8s:enc:aescbc:v1:key:x"}, []string{"/registry"},
		},
		"a prefix with a dot": {[]string{"/kubernetes.io/pods/a/b", pod}, []string{"/kubernetes.io"}},
		"words of Kubernetes in another program's keys": {
			[]string{"/app/pods/a", "x", "/app/events/b", `{"time":1}`, "/app/services/c", "y"}, nil,
		},
		"objects in JSON": {
			[]string{"/k/pods/a/b", `{"kind":"Pod","apiVersion":"v1"}`, "/k/secrets/a/b", `{"kind":"Secret","apiVersion":"v1"}`}, []string{"/k"},
		},
		"a namespace named secrets": {[]string{"/registry/podtemplates/secrets/a", pod, "/registry/pods/a/b", pod}, []string{"/registry"}},
		"a prefix without a slash":  {[]string{"registry/pods/a/b", pod}, nil},
		"a prefix of four parts":    {[]string{"/a/b/c/d/pods/n/x", pod}, []string{"/a/b/c/d"}},
		"a prefix of five parts":    {[]string{"/a/b/c/d/e/pods/n/x", pod}, nil},
		"a control plane below another's prefix": {
			[]string{"/registry/pods/a/b", pod, "/registry/tenant-b/secrets/a/b", pod}, []string{"/registry", "/registry/tenant-b"},
		},
		"one below another's prefix, with a dot": {
			[]string{"/registry/pods/a/b", pod, "/registry/tenant.b/secrets/a/b", pod}, []string{"/registry", "/registry/tenant.b"},
		},
		"a prefix that is called as a resource": {[]string{"/pods/registry/secrets/a/b", pod}, []string{"/pods/registry"}},
		"one of a resource below another's": {
			[]string{"/registry/pods/a/b", pod, "/registry/pods/secrets/a/b", pod}, []string{"/registry", "/registry/pods"},
		},
		"namespaces that are called as resources": {
			[]string{"/registry/cronjobs/namespaces/a", pod, "/registry/services/specs/pods/a", pod, "/registry/ranges/serviceips", pod}, []string{"/registry"},
		},
		"a control plane with new resources only": {[]string{"/registry/podgroups/a/b", pod}, []string{"/registry"}},
		"nothing": {[]string{"foo", "bar"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var f Finder
			for i := 0; i < len(tc.pairs); i += 2 {
				f.Add([]byte(tc.pairs[i]), []byte(tc.pairs[i+1]))
			}
			if got := f.Prefixes(); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The answer must not depend on the order of the keys, nor on how many finders
// saw them: members of one cluster are restored apart and have to decide alike.
func TestTheOrderOfTheKeysDoesNotChangeWhatIsFound(t *testing.T) {
	type pair struct{ key, value string }
	var pairs []pair
	for i := range 3 * maxCandidates { // more than a finder remembers
		dir := fmt.Sprintf("/app/%05d", i)
		pairs = append(pairs, pair{dir + "/pods/n/a", `{"kind":"Pod","apiVersion":"v1"}`})
		if i%7 == 0 {
			pairs = append(pairs, pair{dir + "/secrets/n/a", `{"kind":"Secret","apiVersion":"v1"}`})
		}
	}
	pairs = append(pairs, pair{"/zz/pods/n/a", `{"kind":"Pod","apiVersion":"v1"}`}, pair{"/zz/events/n/a", `{"kind":"Event","apiVersion":"v1"}`},
		pair{"/hosted/one/pods/n/a", "k8s\x00"}, pair{"/hosted/pods/secrets/a", "k8s\x00"})
	var want []string
	r := rand.New(rand.NewPCG(1, 2))
	for try := range 20 {
		r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		finders := make([]Finder, 1+try%4)
		for i, p := range pairs {
			finders[i%len(finders)].Add([]byte(p.key), []byte(p.value))
		}
		for i := range finders[1:] {
			finders[0].Merge(&finders[1+i])
		}
		got := finders[0].Prefixes()
		if try == 0 {
			want = got
		}
		if !slices.Equal(got, want) || !slices.Contains(got, "/zz") || !slices.Contains(got, "/hosted") {
			t.Fatalf("try %d: %d prefixes, %q..., want the same %d each time, /hosted and /zz among them", try, len(got), got[:3], len(want))
		}
	}
}
