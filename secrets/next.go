package secrets

import "fmt"

// nextSteps tells what to do about what was found, in the order that works:
// each step leaves nothing behind that a later one cannot remove.
func nextSteps(r *Report) []Step {
	var steps []Step
	if resources := inState(r, Live, PlainAsConfigured); len(resources) > 0 {
		steps = append(steps, Step{Why: "identity comes first in the configuration for " + join(resources) +
			": put an encrypting provider first and restart every API server"})
	}
	for _, resource := range inState(r, Live, Plain, PlainAsConfigured, Stale) {
		steps = append(steps, Step{
			Why:     "rewrite every object of " + resource + ", so that it is stored with the current provider and key",
			Command: fmt.Sprintf("kubectl get %s --all-namespaces -o json | kubectl replace -f -", resource),
		})
	}
	for _, resource := range inState(r, Live, Unknown) {
		steps = append(steps, Step{Why: "find out who wrote the objects of " + resource + " that are in no format of Kubernetes: the API server cannot read them"})
	}
	if len(r.Credentials) > 0 {
		steps = append(steps, Step{Why: "look at what seems to be a credential outside of Secrets: move it to a Secret, and change it"})
	}
	steps = append(steps, removalSteps(r)...)
	return append(steps, keySteps(r)...)
}

// removalSteps tell how what was in clear goes from the places behind a read.
func removalSteps(r *Report) []Step {
	var steps []Step
	live := len(inState(r, Live, Plain)) > 0
	history := live || len(inState(r, History, Plain)) > 0
	free := history || len(inState(r, Free, Plain)) > 0
	switch {
	case history:
		steps = append(steps, Step{
			Why: "compact, so that older revisions go (API servers compact every 5 minutes too), " +
				"and defragment every member, so that the freed pages go",
			Command: "etcdkit defrag-all --all --compact --keep 0",
		})
	case free:
		steps = append(steps, Step{Why: "defragment every member, so that freed pages go", Command: "etcdkit defrag-all --all"})
	}
	if free || len(inState(r, WAL, Plain)) > 0 {
		steps = append(steps,
			Step{
				Why: "let the write-ahead log of every member turn over: etcd drops segments after its next snapshots, " +
					"and a member that is replaced begins a new log",
				Command: "etcdkit member replace OLD --name NAME --peer-urls URL",
			},
			Step{
				Why:     "drop the backups taken before: each holds what was in clear when it was taken",
				Command: "etcdkit snapshot prune REPO --keep-last 1",
			},
			Step{Why: "treat what was in clear as read: change those credentials"},
		)
	}
	return steps
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
		return "(not named)"
	}
	return fmt.Sprintf("%q", key)
}
