package output_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etcdkit/etcdkit/internal/output"
)

func on(columns int, show func(io.Writer)) string {
	var out strings.Builder
	show(output.Screen(&out, columns))
	return out.String()
}

func TestColumnsFitTheTerminal(t *testing.T) {
	const key = "/registry/apiextensions.k8s.io/customresourcedefinitions"
	keys := [][]string{{"all", "", ""}, {"/registry/é", "7", "1 KiB"}, {key, "12", "20 MiB"}}
	keyHeader := []string{"key", "keys", "bytes"}
	wide := "KEY                                                       KEYS  BYTES\n" +
		"all                                                             \n" +
		"/registry/é                                               7     1 KiB\n" +
		key + "  12    20 MiB\n"
	members := [][]string{
		{"m1", "https://10.0.0.1:2379", "leader", "12.3 ms of 1200 (14.1 ms of 99000)", ""},
		{"m2", "https://10.0.0.2:2379", "no answer", "-", "10.3 ms of 1200 (11.1 ms of 99000)"},
	}
	memberHeader := []string{"member", "endpoint", "ROLE", "fsync p99", "commit p99"}
	for name, tc := range map[string]struct {
		columns int
		header  []string
		rows    [][]string
		want    string
	}{
		"no terminal":   {0, keyHeader, keys, wide},
		"a wide one":    {200, keyHeader, keys, wide},
		"just enough":   {70, keyHeader, keys, wide},
		"one too few":   {69, keyHeader, keys, "KEY                                                      KEYS  BYTES\nall                                                            \n/registry/é                                              7     1 KiB\n" + key + "\n                                                         12    20 MiB\n"},
		"a narrow one":  {40, keyHeader, keys, "KEY                         KEYS  BYTES\nall                               \n/registry/é                 7     1 KiB\n" + key + "\n                            12    20 MiB\n"},
		"far too small": {20, keyHeader, keys, "all\n\nkey:   /registry/é\nkeys:  7\nbytes: 1 KiB\n\nkey:   " + key + "\nkeys:  12\nbytes: 20 MiB\n"},
		"many wide columns become blocks, empty cells left out": {
			60, memberHeader, members,
			"member:     m1\nendpoint:   https://10.0.0.1:2379\nrole:       leader\nfsync p99:  12.3 ms of 1200 (14.1 ms of 99000)\n\n" +
				"member:     m2\nendpoint:   https://10.0.0.2:2379\nrole:       no answer\nfsync p99:  -\ncommit p99: 10.3 ms of 1200 (11.1 ms of 99000)\n",
		},
		"names and values stay": {
			20,
			[]string{"field", "value"},
			[][]string{{"sha-256", strings.Repeat("0", 64)}},
			"FIELD    VALUE\nsha-256  " + strings.Repeat("0", 64) + "\n",
		},
		"no rows": {10, memberHeader, nil, "MEMBER  ENDPOINT  ROLE  FSYNC P99  COMMIT P99\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := on(tc.columns, func(w io.Writer) { output.Columns(w, tc.header, tc.rows) })
			if got != tc.want {
				t.Errorf("got\n%q\nwant\n%q", got, tc.want)
			}
		})
	}
}

// Whatever the terminal, nothing is lost, and only a cell that is alone too wide
// for the terminal makes a line wider than it.
func TestNoCellIsCutOff(t *testing.T) {
	header := []string{"name", "cluster", "created", "state", "verified"}
	var rows [][]string
	for i := range 5 {
		rows = append(rows, []string{
			fmt.Sprintf("%d", i), strings.Repeat("c", 3*i+1), strings.Repeat("d", 30-6*i), "good", strings.Repeat("v", 2*i+1),
		})
	}
	for columns := 1; columns < 120; columns++ {
		got := on(columns, func(w io.Writer) { output.Columns(w, header, rows) })
		for _, row := range rows {
			for _, cell := range row {
				if !strings.Contains(got, cell) {
					t.Fatalf("%d columns: %q is missing in\n%s", columns, cell, got)
				}
			}
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns && columns > 40 {
				t.Errorf("%d columns: a line of %d: %s", columns, n, line)
			}
		}
	}
}

func TestABoxThatDoesNotFitIsNotDrawn(t *testing.T) {
	const box = "┌──────┬────────┬───────┐\n│ NAME │ STATUS │ VALUE │\n├──────┼────────┼───────┤\n│   m1 │     ok │     1 │\n└──────┴────────┴───────┘\n"
	r := output.Result{Table: func() ([]string, [][]string) {
		return []string{"name", "status", "value"}, [][]string{{"m1", "ok", "1"}}
	}}
	for name, tc := range map[string]struct {
		columns int
		want    string
	}{
		"no terminal":            {0, box},
		"just enough":            {25, box},
		"room for columns":       {24, "NAME  STATUS  VALUE\nm1    ok      1\n"},
		"no room for columns":    {10, "name:   m1\nstatus: ok\nvalue:  1\n"},
		"wide enough for others": {200, box},
	} {
		t.Run(name, func(t *testing.T) {
			got := on(tc.columns, func(w io.Writer) {
				if err := output.Table.Print(w, r); err != nil {
					t.Error(err)
				}
			})
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestTextIsBrokenBetweenWords(t *testing.T) {
	const text = "warning  m1: the disk is slow\u00e9, see etcdkit disk check /var/lib/etcd"
	for name, tc := range map[string]struct {
		columns, indent int
		text, want      string
	}{
		"no terminal":              {0, 9, text, text + "\n"},
		"a wide one":               {80, 9, text, text + "\n"},
		"a narrow one":             {40, 9, text, "warning  m1: the disk is slow\u00e9, see\n         etcdkit disk check\n         /var/lib/etcd\n"},
		"a word that is too long":  {12, 2, "see /var/lib/etcd/member now", "see\n  /var/lib/etcd/member\n  now\n"},
		"its own indentation":      {20, 9, "         next: have a look at it", "         next: have\n         a look at\n         it\n"},
		"no room for words at all": {10, 9, text, text + "\n"},
		"no text":                  {80, 0, "", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := on(tc.columns, func(w io.Writer) { output.Text(w, tc.indent, tc.text) }); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
