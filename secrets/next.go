package secrets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/kube"
)

// newConfig writes an EncryptionConfiguration to start from, with a fresh key,
// and never over an existing file. The resource has to be filled in.
const newConfig = `(umask 077; set -C; printf 'apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n` +
	`- resources: [%s]\n  providers:\n  - secretbox: {keys: [{name: key1, secret: %%s}]}\n  - identity: {}\n' ` +
	`"$(head -c 32 /dev/urandom | base64)" > encryption-config.new.yaml)`

// inClear are the states of what can be read by anybody who has the bytes, or may be.
func inClear() []State { return []State{Plain, PlainAsConfigured, Unknown} }

// nextSteps tells what to do about what was found, in the order that works:
// each step leaves nothing behind that a later one cannot remove, and nothing is
// rewritten or removed before that helps.
func nextSteps(r *Report, config *kube.EncryptionConfig) []Step {
	steps := readSteps(r)
	if slices.ContainsFunc(r.Prefixes, kube.IsOpenShift) {
		steps = append(steps, openshiftSteps(r)...)
	} else {
		steps = append(steps, encryptSteps(r, config)...)
		steps = append(steps, rewriteSteps(r)...)
	}
	for _, resource := range inState(r, Live, Unknown) {
		steps = append(steps, Step{Why: "find out who wrote the objects of " + resource + " that are in no format of Kubernetes"})
	}
	if len(r.Credentials) > 0 {
		steps = append(steps, Step{Why: "look at what seems to be a credential outside of Secrets: move it to a Secret, and change it"})
	}
	steps = append(steps, removalSteps(r)...)
	return append(steps, keySteps(r)...)
}

// readSteps tell how to read what could not be read.
func readSteps(r *Report) []Step {
	if !r.ChangedWhileReading {
		return nil
	}
	return []Step{{
		Why:     "the member writes faster than its file can be read: scan a snapshot of it for live, history and free",
		Command: "etcdkit snapshot save member.db && etcdkit secrets scan member.db",
	}}
}

// openshiftSteps let OpenShift's operator do it: it writes the configuration,
// restarts the API servers and rewrites the objects.
func openshiftSteps(r *Report) []Step {
	if len(inState(r, Live, Plain, PlainAsConfigured)) == 0 {
		return nil
	}
	return []Step{
		{
			Why:     "let OpenShift encrypt: its operator writes the configuration, restarts the API servers and rewrites every object",
			Command: `oc patch apiserver cluster --type=merge -p '{"spec":{"encryption":{"type":"aescbc"}}}'`,
		},
		{
			Why:     "wait until it says EncryptionCompleted",
			Command: `oc get kubeapiserver -o=jsonpath='{range .items[0].status.conditions[?(@.type=="Encrypted")]}{.reason}{"\n"}{end}'`,
		},
		verifyStep(),
	}
}

// encryptSteps make API servers encrypt what they write.
func encryptSteps(r *Report, config *kube.EncryptionConfig) []Step {
	var plain []string
	for _, resource := range inState(r, Live, Plain, PlainAsConfigured) {
		if !encrypts(r, config, resource) {
			plain = append(plain, resource)
		}
	}
	if len(plain) == 0 {
		return nil
	}
	first := Step{Why: "nothing encrypts " + join(plain) + " yet: write a configuration with an encrypting provider first, and keep a copy of its key away from etcd"}
	if config != nil {
		first.Why = "in the encryption configuration, put an encrypting provider first for " + join(plain) + ", and keep the providers that are there behind it"
	} else if slices.ContainsFunc(plain, isResourceName) {
		first.Command = fmt.Sprintf(newConfig, strings.Join(slices.DeleteFunc(plain, func(s string) bool { return !isResourceName(s) }), ", "))
	}
	return []Step{first, {Why: "give the configuration to every API server (--encryption-provider-config) and restart all of them, one after the other"}}
}

// encrypts reports whether API servers encrypt a resource already: as the
// configuration says, or where none was given, as some of its objects show.
func encrypts(r *Report, config *kube.EncryptionConfig, resource string) bool {
	if config == nil {
		return slices.Contains(inState(r, Live, Encrypted), resource)
	}
	providers, covered := config.Providers(kube.ParseGroupResource(resource))
	return covered && providers[0].Kind != kube.Identity
}

// rewriteSteps store everything anew, which helps once API servers encrypt.
func rewriteSteps(r *Report) []Step {
	var steps []Step
	for _, resource := range inState(r, Live, Plain, PlainAsConfigured, Stale) {
		step := Step{Why: "then rewrite every object of " + resource + ", so that it is stored with the current provider and key"}
		if isResourceName(resource) {
			step.Command = fmt.Sprintf("kubectl get %s --all-namespaces -o json | kubectl replace -f -", resource)
		}
		steps = append(steps, step)
	}
	if steps == nil {
		return nil
	}
	return append(steps, verifyStep())
}

func verifyStep() Step {
	return Step{Why: "check that nothing is in clear any more, before anything is removed", Command: "etcdkit secrets scan"}
}

// removalSteps tell how what was in clear goes from the places behind a read.
// Old backups go last, after a new one that was scanned.
func removalSteps(r *Report) []Step {
	found := func(p Place) bool { return len(inState(r, p, inClear()...)) > 0 }
	var steps []Step
	history := found(Live) || found(History)
	switch {
	case history:
		steps = append(steps, Step{
			Why: "compact, so that older revisions go (API servers compact every 5 minutes too), " +
				"and defragment every member, so that the freed pages go",
			Command: "etcdkit defrag-all --all --compact --keep 0",
		})
	case found(Free):
		steps = append(steps, Step{Why: "defragment every member, so that freed pages go", Command: "etcdkit defrag-all --all"})
	}
	if found(Other) {
		steps = append(steps, Step{Why: "look at the files that hold it beside the member's own, and remove those that nobody needs"})
	}
	if history || found(Free) || found(WAL) {
		steps = append(steps,
			Step{
				Why: "let the write-ahead log of every member turn over: etcd drops segments after its next snapshots, " +
					"and a member that is replaced begins a new log",
				Command: "etcdkit member replace OLD --name NAME --peer-urls URL",
			},
			Step{Why: "take a new backup, and check that nothing is in clear in it", Command: "etcdkit snapshot save REPO && etcdkit secrets scan REPO"},
			Step{
				Why:     "only when that scan found nothing, drop the backups taken before: each holds what was in clear when it was taken",
				Command: "etcdkit snapshot prune REPO --keep-last 1",
			},
			Step{Why: "treat what was in clear as read: change those credentials"},
		)
	}
	return steps
}

// isResourceName reports whether a name that was found in etcd's keys can be a
// resource's: it is put into commands for a shell.
func isResourceName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return name != "" && name[0] != '-' && name[0] != '.'
}

// keySteps name the keys in use that the API server does not have.
func keySteps(r *Report) []Step {
	if !configured(r) {
		return nil
	}
	var steps []Step
	for _, k := range r.Keys {
		if !k.Configured {
			steps = append(steps, Step{Why: fmt.Sprintf("key %s of %s is in use and not in the configuration: the API server cannot read what it encrypts", quoted(k.Key), k.Provider)})
		}
	}
	return steps
}

// inState lists the resources that have something in a place in one of the
// states.
func inState(r *Report, place Place, states ...State) []string {
	var resources []string
	for _, c := range r.Summary {
		for _, s := range states {
			if c.Place == place && c.State == s && (len(resources) == 0 || resources[len(resources)-1] != c.Resource) {
				resources = append(resources, c.Resource)
			}
		}
	}
	return resources
}

// configured reports whether a configuration was given.
func configured(r *Report) bool {
	for _, k := range r.Keys {
		if k.Configured {
			return true
		}
	}
	return false
}

func quoted(key string) string {
	if key == "" {
		return "(whose name cannot be told)"
	}
	return fmt.Sprintf("%q", key)
}
