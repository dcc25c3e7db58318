package snapshot

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

func TestOnlyABackupsOwnFaultCountsAgainstIt(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":               {nil, false},
		"a full disk":           {&os.PathError{Op: "write", Path: "db", Err: syscall.ENOSPC}, false},
		"too little room":       {ErrNoSpace, false},
		"a read error":          {&os.PathError{Op: "read", Path: "db", Err: syscall.EIO}, false},
		"a stream that was cut": {io.ErrUnexpectedEOF, false},
		"a damaged page":        {&DamageError{First: &mvccdb.Damage{What: "torn"}, Count: 1}, true},
		"damage found early":    {&mvccdb.Damage{What: "torn"}, true},
		"another SHA-256":       {&ChecksumError{}, true},
		"no SHA-256":            {ErrNoTrailer, true},
		"no database":           {mvccdb.ErrNotDatabase, true},
		"not whole":             {ErrIncomplete, true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.err != nil {
				tc.err = fmt.Errorf("x: %w", tc.err)
			}
			if got := spoiled(tc.err); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
