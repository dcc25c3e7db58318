package ctl

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
)

func testTree(d cli.Dialect, stdin string) *tree {
	return &tree{App: app.New("test", d, &cli.Env{In: strings.NewReader(stdin), Out: io.Discard, Err: io.Discard})}
}

// parseTxn reads a whole transaction and returns how many conditions and
// requests it has.
func parseTxn(t testing.TB, d cli.Dialect, text string) (compares, success, failure int, err error) {
	t.Helper()
	tr := testTree(d, text)
	p := &txnParser{t: tr, in: bufio.NewReader(tr.In)}
	cmps, err := p.compares()
	if err != nil {
		return 0, 0, 0, err
	}
	then, err := p.ops(t.Context())
	if err != nil {
		return 0, 0, 0, err
	}
	otherwise, err := p.ops(t.Context())
	return len(cmps), len(then), len(otherwise), err
}

func TestTxnIsParsed(t *testing.T) {
	for name, tc := range map[string]struct {
		dialect cli.Dialect
		text    string
		want    [3]int
		err     string
	}{
		"all three lists":                 {cli.Upstream, "mod(\"a\") > \"0\"\n\nput a 1\nget b\n\ndel c\n\n", [3]int{1, 2, 1}, ""},
		"a lease is compared":             {cli.Upstream, "lease(\"a\") = \"694d5765fc71500b\"\n\n\n\n", [3]int{1, 0, 0}, ""},
		"no lease id":                     {cli.Upstream, "lease(\"a\") = \"zz\"\n\n\n\n", [3]int{}, "invalid txn compare request"},
		"an operator there is not":        {cli.Upstream, "mod(\"a\") >= \"0\"\n\n\n\n", [3]int{}, "unknown operator >="},
		"upstream ends a value at a line": {cli.Upstream, "\nput a \"1\n2\"\n\n\n", [3]int{}, "invalid txn compare request"},
		"a quoted value has lines":        {cli.Native, "val(\"a\") = \"1\n2\"\n\nput a \"1\n\n2\"\nput b '3\n4'\n\n\n", [3]int{1, 2, 0}, ""},
		"a quote stays open":              {cli.Native, "\nput a \"1\n\n\n", [3]int{}, "a quote is not closed"},
		"an apostrophe in a word":         {cli.Native, "\nput a it's\n\n\n", [3]int{0, 1, 0}, ""},
		"the last list does not end":      {cli.Native, "\n\nput a b\n", [3]int{}, "ends with an empty line"},
		"help is no request":              {cli.Native, "\nget a --help\n\n\n", [3]int{}, "invalid txn request"},
		"completion is no request":        {cli.Upstream, "\ncompletion bash\n\n\n", [3]int{}, "invalid txn request"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, c, err := parseTxn(t, tc.dialect, tc.text)
			if got := [3]int{a, b, c}; tc.err == "" && (err != nil || got != tc.want) {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

// FuzzTxn shows that no input makes the parser panic.
func FuzzTxn(f *testing.F) {
	f.Add("mod(\"a\") > \"0\"\n\nput a \"1\\n\"\n\nget a --prefix\n\n")
	f.Add("lease(\"a\") <= \"0\"\n\n'\n\"\\\n\n\n")
	f.Add("val(`a`) = \"\\xff\"\n\nput -- --lease=1 -1\n\ndel '' --from-key\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "del") {
			t.Skip() // upstream's pauses for two seconds
		}
		for _, d := range []cli.Dialect{cli.Upstream, cli.Native} {
			_, _, _, _ = parseTxn(t, d, text)
		}
	})
}

func TestWatchArgumentsAreParsed(t *testing.T) {
	for name, tc := range map[string]struct {
		line       watchLine
		keys, exec []string
		err        error
	}{
		"a key":                  {watchLine{before: []string{"a"}}, []string{"a"}, nil, nil},
		"a range and a command":  {watchLine{before: []string{"a", "b"}, separator: true, after: []string{"echo", "x"}}, []string{"a", "b"}, []string{"echo", "x"}, nil},
		"no command":             {watchLine{before: []string{"a"}, separator: true}, nil, nil, errWatchSeparator},
		"a key twice":            {watchLine{before: []string{"a"}, envKey: "b"}, nil, nil, errWatchEnv},
		"a key twice, a command": {watchLine{before: []string{"a"}, separator: true, after: []string{"x"}, envKey: "b", strict: true}, nil, nil, errWatchEnv},
		"a range of variables":   {watchLine{separator: true, after: []string{"x"}, envKey: "a", envRange: "b", strict: true}, []string{"a", "b"}, []string{"x"}, nil},
		"upstream looks for the command's first word from behind": {
			watchLine{before: []string{"a"}, separator: true, after: []string{"echo", "echo"}, upstream: true}, []string{"a", "echo"}, []string{"echo", "echo"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.line.target()
			if err != tc.err || !slices.Equal(got.keys, tc.keys) || !slices.Equal(got.exec, tc.exec) { //nolint:errorlint // sentinels, not wrapped
				t.Errorf("got %q, %v; want %q %q %v", got, err, tc.keys, tc.exec, tc.err)
			}
		})
	}
}

// FuzzWatchLine shows that no line of interactive watch makes it panic.
func FuzzWatchLine(f *testing.F) {
	f.Add(`watch a b --prefix --rev=3 -- sh -c "echo hi"`, "", "")
	f.Add(`watch --`, "key", "end")
	f.Add("watch \"a\\q\" -i '", "k", "")
	f.Fuzz(func(_ *testing.T, line, envKey, envRange string) {
		for _, upstream := range []bool{true, false} {
			words, err := splitWords(line, upstream)
			if err != nil || len(words) == 0 {
				continue
			}
			target, opts, err := parseWatchLine(words[1:], envKey, envRange, upstream)
			if err == nil {
				_, _, _ = opts.options(testTree(cli.Upstream, ""), target.keys)
			}
		}
	})
}

// FuzzHexIDs shows that ids are added to whatever JSON there is without losing
// any of it.
func FuzzHexIDs(f *testing.F) {
	f.Add(`{"header":{"cluster_id":14841639068965178418,"x":[1,{"lease":-5}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		raw := rawJSON(text)
		if raw == nil {
			t.Skip()
		}
		if _, err := withHexIDs(raw); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	})
}

// rawJSON returns text for encoding, or nil if it is no JSON.
func rawJSON(text string) any {
	if !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}
