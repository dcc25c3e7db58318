package kube

import "strings"

// stored maps the first part of an etcd key to the resource the API knows.
// Built-in resources are stored under their bare name, without their group; a
// name not listed here is taken as one of the core group.
func stored(dir string) GroupResource {
	switch dir {
	case "minions":
		return GroupResource{Resource: "nodes"}
	case "controllers":
		return GroupResource{Resource: "replicationcontrollers"}
	case "ingress":
		return GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}
	case "podsecuritypolicy":
		return GroupResource{Group: "policy", Resource: "podsecuritypolicies"}
	}
	return GroupResource{Group: groupOf(dir), Resource: dir}
}

// storageName is the inverse of stored.
func storageName(gr GroupResource) string {
	switch gr {
	case GroupResource{Resource: "nodes"}:
		return "minions"
	case GroupResource{Resource: "replicationcontrollers"}:
		return "controllers"
	case GroupResource{Resource: "services"}:
		return "services/specs"
	case GroupResource{Resource: "endpoints"}:
		return "services/endpoints"
	case GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}:
		return "ingress"
	case GroupResource{Group: "policy", Resource: "podsecuritypolicies"}:
		return "podsecuritypolicy"
	}
	return gr.Resource
}

// groupOf is the API group of a built-in resource that is not in the core group.
func groupOf(resource string) string {
	switch resource {
	case "controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets":
		return "apps"
	case "cronjobs", "jobs":
		return "batch"
	case "horizontalpodautoscalers":
		return "autoscaling"
	case "poddisruptionbudgets":
		return "policy"
	case "certificatesigningrequests", "clustertrustbundles", "podcertificaterequests":
		return "certificates.k8s.io"
	case "leases", "leasecandidates":
		return "coordination.k8s.io"
	case "endpointslices":
		return "discovery.k8s.io"
	case "flowschemas", "prioritylevelconfigurations":
		return "flowcontrol.apiserver.k8s.io"
	case "ingressclasses", "networkpolicies", "ipaddresses", "servicecidrs":
		return "networking.k8s.io"
	case "runtimeclasses":
		return "node.k8s.io"
	case "clusterroles", "clusterrolebindings", "roles", "rolebindings":
		return "rbac.authorization.k8s.io"
	case "deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices", "devicetaintrules":
		return "resource.k8s.io"
	case "priorityclasses":
		return "scheduling.k8s.io"
	case "csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments", "volumeattributesclasses":
		return "storage.k8s.io"
	case "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies",
		"validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings":
		return "admissionregistration.k8s.io"
	case "storageversions":
		return "internal.apiserver.k8s.io"
	case "storageversionmigrations":
		return "storagemigration.k8s.io"
	}
	return ""
}

// builtIn reports whether group belongs to Kubernetes itself. Those groups
// are reserved, custom resources cannot take them without approval.
func builtIn(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy":
		return true
	}
	return strings.HasSuffix(group, ".k8s.io")
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
