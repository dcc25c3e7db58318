package kube

import (
	"slices"
	"testing"
)

// What is stored under a resource's path is that resource, and is looked for there.
func TestEveryBuiltInResourceIsFoundWhereItIsStored(t *testing.T) {
	for _, r := range BuiltIns() {
		key := "/registry/" + r.Path + "/"
		if r.Namespaced {
			key += "ns/"
		}
		key += "name"
		k, ok := ParseKey("/registry", []byte(key))
		got := GroupResource{Group: k.Group, Resource: k.Resource}
		if !ok || got != r.GroupResource || k.Name != "name" || (k.Namespace == "ns") != r.Namespaced {
			t.Errorf("%s is taken for %+v, want %v", key, k, r.GroupResource)
		}
		if dirs := StoragePrefixes("/registry", r.GroupResource); !slices.Equal(dirs, []string{"/registry/" + r.Path + "/"}) {
			t.Errorf("%v is looked for below %q, want %s", r.GroupResource, dirs, r.Path)
		}
		if same, ok := BuiltIn(r.GroupResource); !ok || same.Path != r.Path || r.Stored == "" || r.Kind == "" {
			t.Errorf("%v is described as %+v", r.GroupResource, same)
		}
	}
}

// A rule for a group covers every resource of the group.
func TestTheTableHasTheGroupsOfResources(t *testing.T) {
	for path, want := range map[string]GroupResource{
		"podgroups":                  {Group: "scheduling.k8s.io", Resource: "podgroups"},
		"workloads":                  {Group: "scheduling.k8s.io", Resource: "workloads"},
		"compositepodgroups":         {Group: "scheduling.k8s.io", Resource: "compositepodgroups"},
		"resourcepoolstatusrequests": {Group: "resource.k8s.io", Resource: "resourcepoolstatusrequests"},
		"evictions":                  {Group: "lifecycle.k8s.io", Resource: "evictions"},
		"podsecuritypolicy":          {Group: "policy", Resource: "podsecuritypolicies"},
		"podpresets":                 {Group: "settings.k8s.io", Resource: "podpresets"},
		"minions":                    {Resource: "nodes"},
		"services/specs":             {Resource: "services"},
		"somethingnew":               {Resource: "somethingnew"},
	} {
		k, _ := ParseKey("/registry", []byte("/registry/"+path+"/name"))
		if got := (GroupResource{Group: k.Group, Resource: k.Resource}); got != want {
			t.Errorf("%s holds %v, want %v", path, got, want)
		}
	}
}

func TestResourcesAreFoundByTheNamesThatPeopleUse(t *testing.T) {
	for name, want := range map[string]string{
		"cm": "configmaps", "ConfigMap": "configmaps", "po": "pods", "deploy": "deployments.apps", "events": "events",
		"ing": "ingresses.networking.k8s.io", "crd": "customresourcedefinitions.apiextensions.k8s.io", "svc": "services",
		"deployments.apps": "deployments.apps", "secret": "secrets", "pods.apps": "", "widgets": "",
	} {
		r, ok := FindBuiltIn(name)
		if got := r.GroupResource.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
