package parity

import "testing"

func TestMask(t *testing.T) {
	m := mask{ids: map[uint64]string{0xf7ca69d08138fe85: "<m1>"}, words: [][2]string{{"http://127.0.0.1:20001", "{ep1}"}, {"127.0.0.1:20001", "{host1}"}}}
	for name, tc := range map[string]struct{ text, want string }{
		"an id in hex":                  {"f7ca69d08138fe85, started", "<m1>, started"},
		"an id in decimal":              {`"member_id":17855200016905862789}`, `"member_id":<m1>}`},
		"an id in protobuf":             {"\x10\x85\xfd\xe3\x89\x88\xba\x9a\xe5\xf7\x01\x18", "\x10<m1>\x18"},
		"a lease's id":                  {"lease 694d9b1c2ab4a10d granted with TTL(100s)", "lease <id> granted with TTL(100s)"},
		"a lease's id in a lock's key":  {`"key":"bDEvNjBiMWEyMjhiOGMyNTQ1Ng=="`, `"key":"l1/<id>"`},
		"a key that only looks so":      {`"key":"Zm9v"`, `"key":"Zm9v"`},
		"a duration":                    {"took = 1.234567ms", "took = <duration>"},
		"an endpoint with and without":  {"http://127.0.0.1:20001 127.0.0.1:20001", "{ep1} {host1}"},
		"a table keeps its widths":      {"│ a │  b │", "│ a │  b │"},
		"a table with sizes loses them": {"│ a │    20 kB │\n├───┼──────────┤", "│ a │ <size> │\n├─┼─┤"},
		"revisions count":               {`"revision":12,"raft_term":3`, `"revision":12,"raft_term":<n>`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := m.stdout(tc.text, false); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMaskOfStandardError(t *testing.T) {
	retry := `{"level":"warn","ts":"2026-01-01T00:00:00Z","caller":"a.go:1","msg":"retrying","attempt":`
	got := mask{}.stderr(retry + "0}\n" + retry + "1}\nError: late\n")
	if want := `{"caller":"a.go:1","level":"warn","msg":"retrying"}` + "\nError: late\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = mask{}.stderr("panic: bad value\n\ngoroutine 1 [running]:\nmain.main()\n")
	if want := "panic: bad value\n\n<stack>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSplit(t *testing.T) {
	got := L(`etcdctl put 'two words' "it's" '' a'b'c`).Args
	want := []string{"etcdctl", "put", "two words", "it's", "", "abc"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("word %d: got %q, want %q", i, got[i], want[i])
		}
	}
}

func TestHelpIsRead(t *testing.T) {
	var c Command
	subs := c.parse("Words\n\nUsage:\n  etcdctl x [command]\n\nKey-value commands\n  get   Gets\n\nAvailable Commands:\n  add   Adds\n\nFlags:\n  -h, --help           help for x\n      --rev int        revision\n      --prefix         all of it\n")
	if len(subs) != 2 || subs[0] != "get" || subs[1] != "add" {
		t.Errorf("subcommands %q", subs)
	}
	if len(c.Flags) != 3 || c.Flags[1] != (Flag{"rev", "int"}) || c.Flags[2] != (Flag{"prefix", ""}) {
		t.Errorf("flags %v", c.Flags)
	}
}
