package cli

import "strings"

// ShellLine joins arguments so that a shell takes them apart again.
func ShellLine(args ...string) string {
	all := make([]string, len(args))
	for i, a := range args {
		all[i] = a
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]{}~#!`") {
			all[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(all, " ")
}
