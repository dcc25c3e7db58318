package store

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// answerHead is how much of an answer is looked at to see who gave it.
const answerHead = 1 << 10

// clockKey is an object that nobody stores. The Date of the answer is wanted.
const clockKey = "etcdkit-clock"

// checkAnswer fails where something else than the store has answered a question
// about what it holds: the S3 client takes any document for a listing, an HTML
// page for an empty one, and every 404 for a missing object.
func checkAnswer(req *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusBadRequest && req.URL.Scheme == "http" {
		if err := wantsTLS(resp); err != nil {
			return err
		}
	}
	if err := refusesInItsPlace(req, resp); err != nil {
		return err
	}
	wanted := rootsOf(req, resp.StatusCode)
	if wanted == nil {
		return nil
	}
	begin, err := beginning(resp)
	if len(begin) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	root := rootOf(begin)
	for _, w := range wanted {
		if root == w {
			return nil
		}
	}
	return fmt.Errorf("%w: HTTP %d, %s", ErrForeign, resp.StatusCode, kindOf(resp))
}

// beginning looks at the beginning of an answer. Its end is found by the client, not
// here.
func beginning(resp *http.Response) ([]byte, error) {
	head := bufio.NewReaderSize(resp.Body, answerHead)
	begin, err := head.Peek(answerHead)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{head, resp.Body}
	return begin, err
}

// errRefusedInItsPlace is an ErrForeign that refuses the request; a retry does not help.
var errRefusedInItsPlace = fmt.Errorf("%w", ErrForeign)

// refusesInItsPlace detects a refusal by something in front of the store, such as a
// proxy: a refusal by the store itself has an S3 error document as its body. An
// empty body proves nothing and is left to the client.
func refusesInItsPlace(req *http.Request, resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusProxyAuthRequired:
		return fmt.Errorf("%w: the proxy asks for a name and a password", errRefusedInItsPlace)
	case http.StatusUnauthorized, http.StatusForbidden:
	default:
		return nil
	}
	if req.Method == http.MethodHead {
		return nil
	}
	begin, _ := beginning(resp)
	if len(begin) == 0 || rootOf(begin) == "Error" {
		return nil
	}
	return fmt.Errorf("%w: HTTP %d, %s", errRefusedInItsPlace, resp.StatusCode, kindOf(resp))
}

// kindOf says what an answer is.
func kindOf(resp *http.Response) string {
	if kind := resp.Header.Get("Content-Type"); kind != "" {
		return kind
	}
	return "without a type"
}

// wantsTLS recognizes the answers of Go's server and of nginx to a request without TLS.
func wantsTLS(resp *http.Response) error {
	begin, _ := beginning(resp)
	text := strings.ToLower(string(begin))
	if strings.Contains(text, "http request to an https server") || strings.Contains(text, "plain http request was sent to https port") {
		return errSpeaksTLS
	}
	return nil
}

// rootsOf returns the documents of which one must answer a request, nil where
// any answer will do.
func rootsOf(req *http.Request, status int) []string {
	query := req.URL.Query()
	switch {
	case req.Method != http.MethodGet:
		return nil
	case status == http.StatusNotFound:
		return []string{"Error"}
	case status != http.StatusOK:
		return nil
	case query.Has("list-type"):
		return []string{"ListBucketResult", "Error"}
	case query.Has("uploads"):
		return []string{"ListMultipartUploadsResult", "Error"}
	}
	return nil
}

// rootOf returns the name of the element that a document begins with.
func rootOf(begin []byte) string {
	decoder := xml.NewDecoder(bytes.NewReader(begin))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	for {
		token, err := decoder.RawToken()
		if err != nil {
			return ""
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local
		}
	}
}

// clock is a server's clock, as its last answer told.
type clock struct {
	mu   sync.Mutex
	told time.Time
	at   time.Time // when, with the monotonic clock that nobody sets
}

// set notes the Date of an answer.
func (c *clock) set(date string) {
	told, err := http.ParseTime(date)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told, c.at = told, time.Now()
}

// now returns the server's time, if one is known.
func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Time{}, false
	}
	return c.told.Add(time.Since(c.at)), true
}
