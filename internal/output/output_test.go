package output_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/etcdkit/etcdkit/internal/output"
)

func full() output.Result {
	return output.Result{
		JSON:   map[string]any{"name": "<a>", "id": "00ff"},
		Proto:  wrapperspb.String("a"),
		Simple: func(w io.Writer) { fmt.Fprintln(w, "a, 00ff") },
		Fields: func(w io.Writer) { fmt.Fprintln(w, `"Name" : "a"`) },
		Table: func() ([]string, [][]string) {
			return []string{"name", "id"}, [][]string{{"a", "00ff"}, {"longer", "1"}}
		},
		Other: map[output.Format]func(io.Writer) error{
			"sarif": func(w io.Writer) error { _, err := io.WriteString(w, "{}"); return err },
		},
	}
}

func TestPrint(t *testing.T) {
	tableOnly := output.Result{Table: full().Table}
	for name, tc := range map[string]struct {
		format output.Format
		result output.Result
		want   string
	}{
		"words":                        {output.Simple, full(), "a, 00ff\n"},
		"words from a table":           {output.Simple, tableOnly, "NAME    ID\na       00ff\nlonger  1\n"},
		"fields":                       {output.Fields, full(), "\"Name\" : \"a\"\n"},
		"json keeps < and > readable":  {output.JSON, full(), "{\"id\":\"00ff\",\"name\":\"<a>\"}\n"},
		"yaml":                         {output.YAML, full(), "id: 00ff\nname: <a>\n"},
		"protobuf":                     {output.Protobuf, full(), "\n\x01a"},
		"a form of the command's own":  {"sarif", full(), "{}"},
		"a box, right-aligned":         {output.Table, tableOnly, "┌────────┬──────┐\n│  NAME  │  ID  │\n├────────┼──────┤\n│      a │ 00ff │\n│ longer │    1 │\n└────────┴──────┘\n"},
		"words where there's no table": {output.Table, output.Result{Simple: full().Simple}, "a, 00ff\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := tc.format.Print(&out, tc.result); err != nil || out.String() != tc.want {
				t.Errorf("got %v and\n%s\nwant\n%s", err, out.String(), tc.want)
			}
		})
	}
}

func TestJSONIsIndentedOnATerminalOnly(t *testing.T) {
	for _, columns := range []int{0, 80} {
		var out strings.Builder
		want := "{\n  \"id\": \"00ff\",\n  \"name\": \"<a>\"\n}\n"
		if err := output.JSON.Print(output.Screen(&out, columns), full()); err != nil || out.String() != want {
			t.Errorf("%d columns: got %v and\n%s", columns, err, out.String())
		}
	}
}

func TestPrintWithoutTheForm(t *testing.T) {
	for _, f := range []output.Format{output.JSON, output.YAML, output.Fields, output.Protobuf, "sarif"} {
		err := f.Print(io.Discard, output.Result{Simple: func(io.Writer) {}})
		if missing, ok := errors.AsType[*output.MissingError](err); !ok || missing.Format != f {
			t.Errorf("%s: got %v, want a MissingError for it", f, err)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestPrintReportsABrokenWriter(t *testing.T) {
	for _, f := range []output.Format{output.Simple, output.Table, output.JSON, output.YAML, output.Fields, output.Protobuf} {
		if err := f.Print(broken{}, full()); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: got %v, want the writer's error", f, err)
		}
	}
}

func TestParse(t *testing.T) {
	if f, err := output.Parse("json", output.Standard()); err != nil || f != output.JSON {
		t.Errorf("json: got %q, %v", f, err)
	}
	_, err := output.Parse("protobuf", output.Standard())
	if want := `--write-out "protobuf": this command has simple, table, json, yaml`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSizeChangeTellsGrowth(t *testing.T) {
	for want, sizes := range map[string][2]int64{
		"300 KiB to 512 KiB, grew by 212 KiB":  {300 << 10, 512 << 10},
		"2.0 MiB to 1.0 MiB, 1.0 MiB returned": {2 << 20, 1 << 20},
		"1.0 MiB before and after":             {1 << 20, 1 << 20},
	} {
		if got := output.SizeChange(sizes[0], sizes[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
