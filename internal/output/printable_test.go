package output_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etcdkit/etcdkit/internal/output"
)

func TestPrintable(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain":                          {"member m1", "member m1"},
		"other scripts":                  {"größe 大小", "größe 大小"},
		"an escape sequence":             {"a\x1b[2Jb", `a\x1b[2Jb`},
		"a title, ended by a bell":       {"\x1b]0;x\a", `\x1b]0;x\x07`},
		"a carriage return":              {"BAD\rGOOD", `BAD\x0dGOOD`},
		"a line of its own":              {"m1\nHEALTHY", `m1\nHEALTHY`},
		"a tab":                          {"a\tb", `a\tb`},
		"a control sequence of one byte": {"a\u009b2Jb", `a\u009b2Jb`},
		"that byte alone":                {"a\x9b2Jb", `a\x9b2Jb`},
		"text that is turned around":     {"a\u202eb", `a\u202eb`},
		"beyond the first plane":         {"a\U000e0001b", `a\udb40\udc01b`},
		"a delete":                       {"a\x7fb", `a\x7fb`},
		"half a character":               {"a\xe5\xa4", `a\xe5\xa4`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := output.Printable(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := output.Printable(tc.want); got != tc.want {
				t.Errorf("a second time: got %q, want %q", got, tc.want)
			}
		})
	}
	if got := output.PrintableLines("a\n\tb\r"); got != "a\n\tb\\x0d" {
		t.Errorf("lines: got %q", got)
	}
}

// A character may be cut in two by the writes of a buffer.
func TestAGuardSeesWholeCharacters(t *testing.T) {
	const text = "größe 大小 😀\x1b[31m\u009b\n"
	want := output.PrintableLines(text)
	for step := 1; step < 9; step++ {
		var out strings.Builder
		g := output.Guard(&out)
		for rest := text; rest != ""; {
			n := min(step, len(rest))
			if written, err := io.WriteString(g, rest[:n]); written != n || err != nil {
				t.Fatalf("wrote %d of %d bytes: %v", written, n, err)
			}
			rest = rest[n:]
		}
		if out.String() != want {
			t.Errorf("steps of %d: got %q, want %q", step, out.String(), want)
		}
	}
}

func TestAGuardLetsOwnSequencesThroughRaw(t *testing.T) {
	var out strings.Builder
	g := output.Screen(output.Guard(&out), 80)
	output.Raw(g, "\x1b[31m")
	_, _ = io.WriteString(g, "red\x1b[0m")
	if got := out.String(); got != "\x1b[31mred\\x1b[0m" {
		t.Errorf("got %q", got)
	}
}

func TestGuardedJSONIsStillJSON(t *testing.T) {
	want := map[string]string{"name": "a\u009b\x1b\u202e\U000e0001\"b"}
	var out strings.Builder
	if err := output.JSON.Print(output.Guard(&out), output.Result{JSON: want}); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got["name"] != want["name"] {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFormsForPeopleArePrintable(t *testing.T) {
	const hostile = "m1\x1b]0;owned\a\nHEALTHY\u202e\xff"
	r := output.Result{
		Simple: func(w io.Writer) {
			_, _ = io.WriteString(w, "name: "+hostile+"\n")
			output.Columns(w, []string{"name"}, [][]string{{hostile}})
			output.Text(w, 2, hostile)
		},
		Table: func() ([]string, [][]string) { return []string{"name"}, [][]string{{hostile}} },
	}
	for _, format := range []output.Format{output.Simple, output.Table} {
		for _, columns := range []int{0, 4, 80} {
			var out strings.Builder
			if err := format.Print(output.Screen(&out, columns), r.ForPeople()); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(out.String(), "\x1b\a\u202e") || !utf8.ValidString(out.String()) {
				t.Errorf("%s, %d columns: got %q", format, columns, out.String())
			}
		}
	}
	exact := r
	exact.Exact = true
	var out strings.Builder
	if err := output.Simple.Print(&out, exact.ForPeople()); err != nil || !strings.Contains(out.String(), "name: "+hostile) {
		t.Errorf("exact: got %q, %v", out.String(), err)
	}
}

func TestCount(t *testing.T) {
	for want, tc := range map[string]struct {
		n    int
		noun string
	}{"1 key": {1, "key"}, "0 keys": {0, "key"}, "2 repositories": {2, "repository"}, "1 repository": {1, "repository"}, "14 days": {14, "day"}} {
		if got := output.Count(tc.n, tc.noun); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
