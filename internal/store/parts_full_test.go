//go:build full

package store

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// go-gitea/gitea#38753: an upload was completed at 10,000 parts without a
// look at whether its source had ended.
func TestAnUploadOfTooManyPartsIsNeverCompleted(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	var parts, completed, aborted atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
			fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
		case r.Method == http.MethodPut:
			parts.Add(1)
			w.Header().Set("ETag", `"e"`)
		case r.Method == http.MethodPost:
			completed.Add(1)
			fmt.Fprint(w, `<CompleteMultipartUploadResult><Bucket>bkt</Bucket><Key>x</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
		case r.Method == http.MethodDelete:
			aborted.Add(1)
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer srv.Close()
	s, err := newS3(t.Context(), "bkt", "", S3Options{Endpoint: srv.URL, RetryFor: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	const size = 16 // far below what plan allows
	put := func(bytesLeft int) (int64, error) {
		return s.putParts(t.Context(), "x", make([]byte, size), bytes.NewReader(make([]byte, bytesLeft)), PutOptions{PartSize: size, Parallel: 2})
	}
	if n, err := put(maxParts * size); err == nil || hint.Of(err) == "" || completed.Load() != 0 || aborted.Load() != 1 {
		t.Errorf("one part too many: %d bytes, %v; completed %d times, aborted %d times", n, err, completed.Load(), aborted.Load())
	}
	parts.Store(0)
	if n, err := put((maxParts - 1) * size); err != nil || n != maxParts*size || parts.Load() != maxParts || completed.Load() != 1 {
		t.Errorf("as many as fit: %d bytes, %v; %d parts, completed %d times", n, err, parts.Load(), completed.Load())
	}
}
