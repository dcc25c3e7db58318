package commands

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/secrets"
)

// printSecrets shows a report in words.
func printSecrets(w io.Writer, r *secrets.Report, limit int) {
	fmt.Fprintf(w, "%s, revision %d, Kubernetes under %s\n\n", printable(r.Source), r.Revision, printable(strings.Join(r.Prefixes, ", ")))
	if len(r.Summary) == 0 {
		fmt.Fprintln(w, "nothing of what is looked at is stored here")
	} else {
		header, rows := secretsTable(r)
		output.Columns(w, header, rows)
	}
	for _, state := range secrets.States() {
		printFindings(w, r, state, limit)
	}
	if r.NotNamed > 0 {
		fmt.Fprintf(w, "\n%d are counted but not named: no more are kept\n", r.NotNamed)
	}
	printDetected(w, r, limit)
	printUnopened(w, r, limit)
	printKeys(w, r)
	printPlaces(w, r)
	if len(r.Next) > 0 {
		fmt.Fprintln(w, "\nnext:")
	}
	for i, step := range r.Next {
		fmt.Fprintf(w, "  %d. %s\n", i+1, printable(step.Why))
		if step.Command != "" {
			fmt.Fprintf(w, "       %s\n", printable(step.Command))
		}
	}
}

// secretsTable is the summary as a table.
func secretsTable(r *secrets.Report) (header []string, rows [][]string) {
	for _, c := range r.Summary {
		rows = append(rows, []string{
			printable(c.Resource), string(c.Place), string(c.State), printable(c.Provider), printable(c.Key), strconv.Itoa(c.Count),
		})
	}
	return []string{"RESOURCE", "PLACE", "STATE", "PROVIDER", "KEY", "COUNT"}, rows
}

// printFindings names the objects in one state.
func printFindings(w io.Writer, r *secrets.Report, state secrets.State, limit int) {
	if state == secrets.Stale {
		return // counted by key
	}
	total := 0
	for _, c := range r.Summary {
		if c.State == state {
			total += c.Count
		}
	}
	var found []secrets.Finding
	for _, f := range r.Findings {
		if f.State == state {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s (%d):\n", state, total)
	for _, f := range found[:shownOf(len(found), limit)] {
		fmt.Fprintf(w, "  %-8s %s %s%s%s\n", f.Place, printable(f.Resource), objectName(f.Namespace, f.Name), written(f.Revision, f.CreateRevision, f.Index), inFile(f.File))
	}
	printRest(w, total, limit)
}

// objectName is the name of an object, which may have been overwritten.
func objectName(namespace, name string) string {
	if name == "" {
		return "(name overwritten)"
	}
	return printable(strings.TrimPrefix(namespace+"/"+name, "/"))
}

// inFile says in which file of a data directory a version is.
func inFile(name string) string {
	if name == "" {
		return ""
	}
	return "  in " + printable(name)
}

// written says when a version was written.
func written(revision, created int64, index uint64) string {
	switch {
	case created > 0:
		return fmt.Sprintf("  written at revision %d, created at %d", revision, created)
	case revision > 0:
		return fmt.Sprintf("  written at revision %d", revision)
	case index > 0:
		return fmt.Sprintf("  in log entry %d", index)
	}
	return ""
}

// printKeys says which keys are in use where, and which are not.
func printKeys(w io.Writer, r *secrets.Report) {
	if len(r.Keys) == 0 {
		return
	}
	fmt.Fprint(w, "\nkeys:\n")
	for _, k := range r.Keys {
		var uses []string
		for _, place := range secrets.Places() {
			if n := k.Counts[place]; n > 0 {
				uses = append(uses, fmt.Sprintf("%s %d", place, n))
			}
		}
		if len(uses) == 0 {
			uses = []string{"configured, not in use here"}
		}
		fmt.Fprintf(w, "  %s %s: %s\n", printable(k.Provider), printable(k.Key), strings.Join(uses, ", "))
	}
}

func printUnopened(w io.Writer, r *secrets.Report, limit int) {
	closed := r.NotOpened + r.CannotTell
	if r.Opened > 0 || closed > 0 {
		fmt.Fprintf(w, "\n%d values open, %d do not\n", r.Opened, closed)
	}
	for _, u := range r.Unopened[:shownOf(len(r.Unopened), limit)] {
		fmt.Fprintf(w, "  %-8s %s  %s\n", u.Place, printable(u.EtcdKey), printable(u.Reason))
	}
	printRest(w, closed, limit)
}

// printDetected names the objects that hold what looks like a credential.
func printDetected(w io.Writer, r *secrets.Report, limit int) {
	if len(r.Credentials) == 0 {
		return
	}
	fmt.Fprint(w, "\nwhat looks like credentials, in clear:\n")
	for _, c := range r.Credentials {
		fmt.Fprintf(w, "  %-8s %s %s: %d\n", c.Place, printable(c.Resource), c.Rule, c.Count)
	}
	for _, d := range r.Detected[:shownOf(len(r.Detected), limit)] {
		fmt.Fprintf(w, "  %-8s %s %s  %s%s\n", d.Place, printable(d.Resource),
			objectName(d.Namespace, d.Name), strings.Join(d.Rules, ", "), written(d.Revision, 0, d.Index)+inFile(d.File))
	}
	printRest(w, len(r.Detected), limit)
}

// printPlaces says how much of each place was seen.
func printPlaces(w io.Writer, r *secrets.Report) {
	fmt.Fprintln(w)
	for _, p := range r.Places {
		words := fmt.Sprintf("%-8s %d versions of objects", p.Place, p.Objects)
		if p.Bytes > 0 {
			words += " in " + humanize.IBytes(uint64(p.Bytes))
		}
		if !p.Read {
			words = fmt.Sprintf("%-8s not read in whole", p.Place)
		}
		if p.Reason != "" {
			words += ": " + printable(p.Reason)
		}
		fmt.Fprintln(w, words)
	}
	for _, place := range r.NotLookedAt {
		fmt.Fprintf(w, "%-8s not looked at\n", place)
	}
	for _, prefix := range r.OtherPrefixes {
		fmt.Fprintf(w, "a control plane under %s was not looked at: --etcd-prefix did not name it\n", printable(prefix))
	}
	for _, f := range r.NotScanned {
		searched := "not scanned"
		if f.Searched {
			searched = "searched for records by its bytes"
		}
		fmt.Fprintf(w, "%s: %s: %s\n", printable(f.File), f.Reason, searched)
	}
	if r.DamageCount > 0 {
		fmt.Fprintf(w, "%d damaged pages or records:\n", r.DamageCount)
	}
	for _, d := range r.Damage {
		fmt.Fprintf(w, "  %s\n", printable(d))
	}
}

func shownOf(n, limit int) int {
	if limit <= 0 {
		return n
	}
	return min(n, limit)
}

func printRest(w io.Writer, n, limit int) {
	if rest := n - shownOf(n, limit); rest > 0 {
		fmt.Fprintf(w, "  and %d more (--limit 0 names all)\n", rest)
	}
}

// printable quotes a text that would do something else on a terminal than
// being shown.
func printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
