// Code generated from k8s.io/kubernetes v1.37.2 by internal/kube/gen; DO NOT EDIT.

package kube

// builtIns lists the resources that API servers store themselves, in order of path.
var builtIns = [...]Resource{
	{GroupResource: GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, Kind: "CustomResourceDefinition", Singular: "customresourcedefinition", ShortNames: []string{"crd", "crds"}, Path: "apiextensions.k8s.io/customresourcedefinitions", Stored: "v1beta1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}, Kind: "APIService", Singular: "apiservice", Path: "apiregistration.k8s.io/apiservices", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "auditregistration.k8s.io", Resource: "auditsinks"}, Kind: "AuditSink", Singular: "auditsink", Path: "auditsinks", Stored: "v1alpha1"},
	{GroupResource: GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}, Kind: "CertificateSigningRequest", Singular: "certificatesigningrequest", ShortNames: []string{"csr"}, Path: "certificatesigningrequests", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "networking.k8s.io", Resource: "clustercidrs"}, Kind: "ClusterCIDR", Singular: "clustercidr", Path: "clustercidrs", Stored: "v1alpha1"},
	{GroupResource: GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}, Kind: "ClusterRoleBinding", Singular: "clusterrolebinding", Path: "clusterrolebindings", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, Kind: "ClusterRole", Singular: "clusterrole", Path: "clusterroles", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}, Kind: "ClusterTrustBundle", Singular: "clustertrustbundle", Path: "clustertrustbundles", Stored: "v1beta1", Served: []string{"v1", "v1beta1"}},
	{GroupResource: GroupResource{Group: "scheduling.k8s.io", Resource: "compositepodgroups"}, Kind: "CompositePodGroup", Singular: "compositepodgroup", Namespaced: true, Path: "compositepodgroups", Stored: "v1alpha3", Served: []string{"v1alpha3"}},
	{GroupResource: GroupResource{Group: "", Resource: "configmaps"}, Kind: "ConfigMap", Singular: "configmap", ShortNames: []string{"cm"}, Namespaced: true, Path: "configmaps", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "apps", Resource: "controllerrevisions"}, Kind: "ControllerRevision", Singular: "controllerrevision", Namespaced: true, Path: "controllerrevisions", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "replicationcontrollers"}, Kind: "ReplicationController", Singular: "replicationcontroller", ShortNames: []string{"rc"}, Namespaced: true, Path: "controllers", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "batch", Resource: "cronjobs"}, Kind: "CronJob", Singular: "cronjob", ShortNames: []string{"cj"}, Namespaced: true, Path: "cronjobs", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "storage.k8s.io", Resource: "csidrivers"}, Kind: "CSIDriver", Singular: "csidriver", Path: "csidrivers", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}, Kind: "CSINode", Singular: "csinode", Path: "csinodes", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "storage.k8s.io", Resource: "csistoragecapacities"}, Kind: "CSIStorageCapacity", Singular: "csistoragecapacity", Namespaced: true, Path: "csistoragecapacities", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "apps", Resource: "daemonsets"}, Kind: "DaemonSet", Singular: "daemonset", ShortNames: []string{"ds"}, Namespaced: true, Path: "daemonsets", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "apps", Resource: "deployments"}, Kind: "Deployment", Singular: "deployment", ShortNames: []string{"deploy"}, Namespaced: true, Path: "deployments", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}, Kind: "DeviceClass", Singular: "deviceclass", Path: "deviceclasses", Stored: "v1", Served: []string{"v1", "v1beta2", "v1beta1"}},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "devicetaintrules"}, Kind: "DeviceTaintRule", Singular: "devicetaintrule", Path: "devicetaintrules", Stored: "v1beta2", Served: []string{"v1", "v1beta2", "v1alpha3"}},
	{GroupResource: GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}, Kind: "EndpointSlice", Singular: "endpointslice", Namespaced: true, Path: "endpointslices", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "events"}, Kind: "Event", Singular: "event", ShortNames: []string{"ev"}, Namespaced: true, Path: "events", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "lifecycle.k8s.io", Resource: "evictionrequests"}, Kind: "EvictionRequest", Singular: "evictionrequest", Namespaced: true, Path: "evictionrequests", Stored: "v1alpha1", Served: []string{"v1alpha1"}},
	{GroupResource: GroupResource{Group: "lifecycle.k8s.io", Resource: "evictions"}, Kind: "Eviction", Singular: "eviction", Namespaced: true, Path: "evictions", Stored: "v1alpha1", Served: []string{"v1alpha1"}},
	{GroupResource: GroupResource{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}, Kind: "FlowSchema", Singular: "flowschema", Path: "flowschemas", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}, Kind: "HorizontalPodAutoscaler", Singular: "horizontalpodautoscaler", ShortNames: []string{"hpa"}, Namespaced: true, Path: "horizontalpodautoscalers", Stored: "v2", Served: []string{"v2", "v1"}},
	{GroupResource: GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}, Kind: "Ingress", Singular: "ingress", ShortNames: []string{"ing"}, Namespaced: true, Path: "ingress", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "networking.k8s.io", Resource: "ingressclasses"}, Kind: "IngressClass", Singular: "ingressclass", Path: "ingressclasses", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "networking.k8s.io", Resource: "ipaddresses"}, Kind: "IPAddress", Singular: "ipaddress", ShortNames: []string{"ip"}, Path: "ipaddresses", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "batch", Resource: "jobs"}, Kind: "Job", Singular: "job", Namespaced: true, Path: "jobs", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "coordination.k8s.io", Resource: "leasecandidates"}, Kind: "LeaseCandidate", Singular: "leasecandidate", Namespaced: true, Path: "leasecandidates", Stored: "v1beta1", Served: []string{"v1beta1", "v1alpha2"}},
	{GroupResource: GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, Kind: "Lease", Singular: "lease", Namespaced: true, Path: "leases", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "limitranges"}, Kind: "LimitRange", Singular: "limitrange", ShortNames: []string{"limits"}, Namespaced: true, Path: "limitranges", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "nodes"}, Kind: "Node", Singular: "node", ShortNames: []string{"no"}, Path: "minions", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}, Kind: "MutatingAdmissionPolicy", Singular: "mutatingadmissionpolicy", Path: "mutatingadmissionpolicies", Stored: "v1", Served: []string{"v1", "v1beta1", "v1alpha1"}},
	{GroupResource: GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}, Kind: "MutatingAdmissionPolicyBinding", Singular: "mutatingadmissionpolicybinding", Path: "mutatingadmissionpolicybindings", Stored: "v1", Served: []string{"v1", "v1beta1", "v1alpha1"}},
	{GroupResource: GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}, Kind: "MutatingWebhookConfiguration", Singular: "mutatingwebhookconfiguration", Path: "mutatingwebhookconfigurations", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "namespaces"}, Kind: "Namespace", Singular: "namespace", ShortNames: []string{"ns"}, Path: "namespaces", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "networking.k8s.io", Resource: "networkpolicies"}, Kind: "NetworkPolicy", Singular: "networkpolicy", ShortNames: []string{"netpol"}, Namespaced: true, Path: "networkpolicies", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "persistentvolumeclaims"}, Kind: "PersistentVolumeClaim", Singular: "persistentvolumeclaim", ShortNames: []string{"pvc"}, Namespaced: true, Path: "persistentvolumeclaims", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "persistentvolumes"}, Kind: "PersistentVolume", Singular: "persistentvolume", ShortNames: []string{"pv"}, Path: "persistentvolumes", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}, Kind: "PodCertificateRequest", Singular: "podcertificaterequest", Namespaced: true, Path: "podcertificaterequests", Stored: "v1beta1", Served: []string{"v1", "v1beta1"}},
	{GroupResource: GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, Kind: "PodDisruptionBudget", Singular: "poddisruptionbudget", ShortNames: []string{"pdb"}, Namespaced: true, Path: "poddisruptionbudgets", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "scheduling.k8s.io", Resource: "podgroups"}, Kind: "PodGroup", Singular: "podgroup", Namespaced: true, Path: "podgroups", Stored: "v1beta1", Served: []string{"v1beta1", "v1alpha3"}},
	{GroupResource: GroupResource{Group: "settings.k8s.io", Resource: "podpresets"}, Kind: "PodPreset", Singular: "podpreset", Namespaced: true, Path: "podpresets", Stored: "v1alpha1"},
	{GroupResource: GroupResource{Group: "", Resource: "pods"}, Kind: "Pod", Singular: "pod", ShortNames: []string{"po"}, Namespaced: true, Path: "pods", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "podschedulingcontexts"}, Kind: "PodSchedulingContext", Singular: "podschedulingcontext", Namespaced: true, Path: "podschedulingcontexts", Stored: "v1alpha3"},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "podschedulings"}, Kind: "PodScheduling", Singular: "podscheduling", Namespaced: true, Path: "podschedulings", Stored: "v1alpha1"},
	{GroupResource: GroupResource{Group: "policy", Resource: "podsecuritypolicies"}, Kind: "PodSecurityPolicy", Singular: "podsecuritypolicy", Path: "podsecuritypolicy", Stored: "v1beta1"},
	{GroupResource: GroupResource{Group: "", Resource: "podtemplates"}, Kind: "PodTemplate", Singular: "podtemplate", Namespaced: true, Path: "podtemplates", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}, Kind: "PriorityClass", Singular: "priorityclass", ShortNames: []string{"pc"}, Path: "priorityclasses", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}, Kind: "PriorityLevelConfiguration", Singular: "prioritylevelconfiguration", Path: "prioritylevelconfigurations", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "apps", Resource: "replicasets"}, Kind: "ReplicaSet", Singular: "replicaset", ShortNames: []string{"rs"}, Namespaced: true, Path: "replicasets", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "resourceclaimparameters"}, Kind: "ResourceClaimParameters", Singular: "resourceclaimparameters", Namespaced: true, Path: "resourceclaimparameters", Stored: "v1alpha2"},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}, Kind: "ResourceClaim", Singular: "resourceclaim", Namespaced: true, Path: "resourceclaims", Stored: "v1", Served: []string{"v1", "v1beta2", "v1beta1"}},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "resourceclaimtemplates"}, Kind: "ResourceClaimTemplate", Singular: "resourceclaimtemplate", Namespaced: true, Path: "resourceclaimtemplates", Stored: "v1", Served: []string{"v1", "v1beta2", "v1beta1"}},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "resourceclasses"}, Kind: "ResourceClass", Singular: "resourceclass", Path: "resourceclasses", Stored: "v1alpha2"},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "resourceclassparameters"}, Kind: "ResourceClassParameters", Singular: "resourceclassparameters", Namespaced: true, Path: "resourceclassparameters", Stored: "v1alpha2"},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "resourcepoolstatusrequests"}, Kind: "ResourcePoolStatusRequest", Singular: "resourcepoolstatusrequest", Path: "resourcepoolstatusrequests", Stored: "v1alpha3", Served: []string{"v1alpha3"}},
	{GroupResource: GroupResource{Group: "", Resource: "resourcequotas"}, Kind: "ResourceQuota", Singular: "resourcequota", ShortNames: []string{"quota"}, Namespaced: true, Path: "resourcequotas", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}, Kind: "ResourceSlice", Singular: "resourceslice", Path: "resourceslices", Stored: "v1", Served: []string{"v1", "v1beta2", "v1beta1"}},
	{GroupResource: GroupResource{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, Kind: "RoleBinding", Singular: "rolebinding", Namespaced: true, Path: "rolebindings", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, Kind: "Role", Singular: "role", Namespaced: true, Path: "roles", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "node.k8s.io", Resource: "runtimeclasses"}, Kind: "RuntimeClass", Singular: "runtimeclass", Path: "runtimeclasses", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "secrets"}, Kind: "Secret", Singular: "secret", Namespaced: true, Path: "secrets", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "serviceaccounts"}, Kind: "ServiceAccount", Singular: "serviceaccount", ShortNames: []string{"sa"}, Namespaced: true, Path: "serviceaccounts", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"}, Kind: "ServiceCIDR", Singular: "servicecidr", Path: "servicecidrs", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "endpoints"}, Kind: "Endpoints", Singular: "endpoints", ShortNames: []string{"ep"}, Namespaced: true, Path: "services/endpoints", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "", Resource: "services"}, Kind: "Service", Singular: "service", ShortNames: []string{"svc"}, Namespaced: true, Path: "services/specs", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "apps", Resource: "statefulsets"}, Kind: "StatefulSet", Singular: "statefulset", ShortNames: []string{"sts"}, Namespaced: true, Path: "statefulsets", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}, Kind: "StorageClass", Singular: "storageclass", ShortNames: []string{"sc"}, Path: "storageclasses", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}, Kind: "StorageVersionMigration", Singular: "storageversionmigration", Path: "storageversionmigrations", Stored: "v1beta1", Served: []string{"v1", "v1beta1"}},
	{GroupResource: GroupResource{Group: "internal.apiserver.k8s.io", Resource: "storageversions"}, Kind: "StorageVersion", Singular: "storageversion", Path: "storageversions", Stored: "v1alpha1", Served: []string{"v1alpha1"}},
	{GroupResource: GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}, Kind: "ValidatingAdmissionPolicy", Singular: "validatingadmissionpolicy", Path: "validatingadmissionpolicies", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}, Kind: "ValidatingAdmissionPolicyBinding", Singular: "validatingadmissionpolicybinding", Path: "validatingadmissionpolicybindings", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}, Kind: "ValidatingWebhookConfiguration", Singular: "validatingwebhookconfiguration", Path: "validatingwebhookconfigurations", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}, Kind: "VolumeAttachment", Singular: "volumeattachment", Path: "volumeattachments", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}, Kind: "VolumeAttributesClass", Singular: "volumeattributesclass", ShortNames: []string{"vac"}, Path: "volumeattributesclasses", Stored: "v1", Served: []string{"v1"}},
	{GroupResource: GroupResource{Group: "scheduling.k8s.io", Resource: "workloads"}, Kind: "Workload", Singular: "workload", Namespaced: true, Path: "workloads", Stored: "v1beta1", Served: []string{"v1beta1", "v1alpha3"}},
}

// builtInAt returns the place in builtIns of what is stored under path, -1 for anything else.
func builtInAt(path string) int {
	switch path {
	case "apiextensions.k8s.io/customresourcedefinitions":
		return 0
	case "apiregistration.k8s.io/apiservices":
		return 1
	case "auditsinks":
		return 2
	case "certificatesigningrequests":
		return 3
	case "clustercidrs":
		return 4
	case "clusterrolebindings":
		return 5
	case "clusterroles":
		return 6
	case "clustertrustbundles":
		return 7
	case "compositepodgroups":
		return 8
	case "configmaps":
		return 9
	case "controllerrevisions":
		return 10
	case "controllers":
		return 11
	case "cronjobs":
		return 12
	case "csidrivers":
		return 13
	case "csinodes":
		return 14
	case "csistoragecapacities":
		return 15
	case "daemonsets":
		return 16
	case "deployments":
		return 17
	case "deviceclasses":
		return 18
	case "devicetaintrules":
		return 19
	case "endpointslices":
		return 20
	case "events":
		return 21
	case "evictionrequests":
		return 22
	case "evictions":
		return 23
	case "flowschemas":
		return 24
	case "horizontalpodautoscalers":
		return 25
	case "ingress":
		return 26
	case "ingressclasses":
		return 27
	case "ipaddresses":
		return 28
	case "jobs":
		return 29
	case "leasecandidates":
		return 30
	case "leases":
		return 31
	case "limitranges":
		return 32
	case "minions":
		return 33
	case "mutatingadmissionpolicies":
		return 34
	case "mutatingadmissionpolicybindings":
		return 35
	case "mutatingwebhookconfigurations":
		return 36
	case "namespaces":
		return 37
	case "networkpolicies":
		return 38
	case "persistentvolumeclaims":
		return 39
	case "persistentvolumes":
		return 40
	case "podcertificaterequests":
		return 41
	case "poddisruptionbudgets":
		return 42
	case "podgroups":
		return 43
	case "podpresets":
		return 44
	case "pods":
		return 45
	case "podschedulingcontexts":
		return 46
	case "podschedulings":
		return 47
	case "podsecuritypolicy":
		return 48
	case "podtemplates":
		return 49
	case "priorityclasses":
		return 50
	case "prioritylevelconfigurations":
		return 51
	case "replicasets":
		return 52
	case "resourceclaimparameters":
		return 53
	case "resourceclaims":
		return 54
	case "resourceclaimtemplates":
		return 55
	case "resourceclasses":
		return 56
	case "resourceclassparameters":
		return 57
	case "resourcepoolstatusrequests":
		return 58
	case "resourcequotas":
		return 59
	case "resourceslices":
		return 60
	case "rolebindings":
		return 61
	case "roles":
		return 62
	case "runtimeclasses":
		return 63
	case "secrets":
		return 64
	case "serviceaccounts":
		return 65
	case "servicecidrs":
		return 66
	case "services/endpoints":
		return 67
	case "services/specs":
		return 68
	case "statefulsets":
		return 69
	case "storageclasses":
		return 70
	case "storageversionmigrations":
		return 71
	case "storageversions":
		return 72
	case "validatingadmissionpolicies":
		return 73
	case "validatingadmissionpolicybindings":
		return 74
	case "validatingwebhookconfigurations":
		return 75
	case "volumeattachments":
		return 76
	case "volumeattributesclasses":
		return 77
	case "workloads":
		return 78
	}
	return -1
}

// builtInNamed returns the place in builtIns of a resource, -1 for anything else.
func builtInNamed(gr GroupResource) int {
	switch gr {
	case GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:
		return 0
	case GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}:
		return 1
	case GroupResource{Group: "auditregistration.k8s.io", Resource: "auditsinks"}:
		return 2
	case GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:
		return 3
	case GroupResource{Group: "networking.k8s.io", Resource: "clustercidrs"}:
		return 4
	case GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:
		return 5
	case GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:
		return 6
	case GroupResource{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}:
		return 7
	case GroupResource{Group: "scheduling.k8s.io", Resource: "compositepodgroups"}:
		return 8
	case GroupResource{Group: "", Resource: "configmaps"}:
		return 9
	case GroupResource{Group: "apps", Resource: "controllerrevisions"}:
		return 10
	case GroupResource{Group: "", Resource: "replicationcontrollers"}:
		return 11
	case GroupResource{Group: "batch", Resource: "cronjobs"}:
		return 12
	case GroupResource{Group: "storage.k8s.io", Resource: "csidrivers"}:
		return 13
	case GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}:
		return 14
	case GroupResource{Group: "storage.k8s.io", Resource: "csistoragecapacities"}:
		return 15
	case GroupResource{Group: "apps", Resource: "daemonsets"}:
		return 16
	case GroupResource{Group: "apps", Resource: "deployments"}:
		return 17
	case GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}:
		return 18
	case GroupResource{Group: "resource.k8s.io", Resource: "devicetaintrules"}:
		return 19
	case GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}:
		return 20
	case GroupResource{Group: "", Resource: "events"}:
		return 21
	case GroupResource{Group: "lifecycle.k8s.io", Resource: "evictionrequests"}:
		return 22
	case GroupResource{Group: "lifecycle.k8s.io", Resource: "evictions"}:
		return 23
	case GroupResource{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:
		return 24
	case GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}:
		return 25
	case GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}:
		return 26
	case GroupResource{Group: "networking.k8s.io", Resource: "ingressclasses"}:
		return 27
	case GroupResource{Group: "networking.k8s.io", Resource: "ipaddresses"}:
		return 28
	case GroupResource{Group: "batch", Resource: "jobs"}:
		return 29
	case GroupResource{Group: "coordination.k8s.io", Resource: "leasecandidates"}:
		return 30
	case GroupResource{Group: "coordination.k8s.io", Resource: "leases"}:
		return 31
	case GroupResource{Group: "", Resource: "limitranges"}:
		return 32
	case GroupResource{Group: "", Resource: "nodes"}:
		return 33
	case GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:
		return 34
	case GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}:
		return 35
	case GroupResource{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:
		return 36
	case GroupResource{Group: "", Resource: "namespaces"}:
		return 37
	case GroupResource{Group: "networking.k8s.io", Resource: "networkpolicies"}:
		return 38
	case GroupResource{Group: "", Resource: "persistentvolumeclaims"}:
		return 39
	case GroupResource{Group: "", Resource: "persistentvolumes"}:
		return 40
	case GroupResource{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}:
		return 41
	case GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}:
		return 42
	case GroupResource{Group: "scheduling.k8s.io", Resource: "podgroups"}:
		return 43
	case GroupResource{Group: "settings.k8s.io", Resource: "podpresets"}:
		return 44
	case GroupResource{Group: "", Resource: "pods"}:
		return 45
	case GroupResource{Group: "resource.k8s.io", Resource: "podschedulingcontexts"}:
		return 46
	case GroupResource{Group: "resource.k8s.io", Resource: "podschedulings"}:
		return 47
	case GroupResource{Group: "policy", Resource: "podsecuritypolicies"}:
		return 48
	case GroupResource{Group: "", Resource: "podtemplates"}:
		return 49
	case GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}:
		return 50
	case GroupResource{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}:
		return 51
	case GroupResource{Group: "apps", Resource: "replicasets"}:
		return 52
	case GroupResource{Group: "resource.k8s.io", Resource: "resourceclaimparameters"}:
		return 53
	case GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}:
		return 54
	case GroupResource{Group: "resource.k8s.io", Resource: "resourceclaimtemplates"}:
		return 55
	case GroupResource{Group: "resource.k8s.io", Resource: "resourceclasses"}:
		return 56
	case GroupResource{Group: "resource.k8s.io", Resource: "resourceclassparameters"}:
		return 57
	case GroupResource{Group: "resource.k8s.io", Resource: "resourcepoolstatusrequests"}:
		return 58
	case GroupResource{Group: "", Resource: "resourcequotas"}:
		return 59
	case GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}:
		return 60
	case GroupResource{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:
		return 61
	case GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}:
		return 62
	case GroupResource{Group: "node.k8s.io", Resource: "runtimeclasses"}:
		return 63
	case GroupResource{Group: "", Resource: "secrets"}:
		return 64
	case GroupResource{Group: "", Resource: "serviceaccounts"}:
		return 65
	case GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"}:
		return 66
	case GroupResource{Group: "", Resource: "endpoints"}:
		return 67
	case GroupResource{Group: "", Resource: "services"}:
		return 68
	case GroupResource{Group: "apps", Resource: "statefulsets"}:
		return 69
	case GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}:
		return 70
	case GroupResource{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}:
		return 71
	case GroupResource{Group: "internal.apiserver.k8s.io", Resource: "storageversions"}:
		return 72
	case GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:
		return 73
	case GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}:
		return 74
	case GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:
		return 75
	case GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}:
		return 76
	case GroupResource{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}:
		return 77
	case GroupResource{Group: "scheduling.k8s.io", Resource: "workloads"}:
		return 78
	}
	return -1
}

// isBuiltInGroup reports whether group has resources of builtIns.
func isBuiltInGroup(group string) bool {
	switch group {
	case "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "auditregistration.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "settings.k8s.io", "storage.k8s.io", "storagemigration.k8s.io":
		return true
	}
	return false
}
