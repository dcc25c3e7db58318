package store_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
)

// A page of a proxy or load balancer is not the store's word.
func TestWhatIsNotTheStoresWordProvesNothing(t *testing.T) {
	const page = "<!DOCTYPE html><html><head><title>Sorry</title></head><body>Back soon.</body></html>"
	list := func(ctx context.Context, s store.Store) error { _, err := s.List(ctx, ""); return err }
	uploads := func(ctx context.Context, s store.Store) error { _, err := s.Uploads(ctx, ""); return err }
	stat := func(ctx context.Context, s store.Store) error { _, err := s.Stat(ctx, "there"); return err }
	absent := func(ctx context.Context, s store.Store) error { _, err := s.Stat(ctx, "absent"); return err }
	read := func(ctx context.Context, s store.Store) error { _, err := get(s, ctx, "there"); return err }
	for name, tc := range map[string]struct {
		rule faultproxy.Rule
		ask  func(context.Context, store.Store) error
		want error // nil for well
	}{
		"nothing wrong":                      {faultproxy.Rule{Method: "NONE"}, list, nil},
		"an object that is there":            {faultproxy.Rule{Method: "NONE"}, stat, nil},
		"an object that is not":              {faultproxy.Rule{Method: "NONE"}, absent, store.ErrNotExist},
		"a page as a listing":                {faultproxy.Rule{Path: "list-type=2", Status: 200, Page: page}, list, store.ErrForeign},
		"a page as a listing, once":          {faultproxy.Rule{Path: "list-type=2", Status: 200, Page: page, Times: 1}, list, nil},
		"an empty page as a listing":         {faultproxy.Rule{Path: "list-type=2", Status: 200, Page: " "}, list, store.ErrForeign},
		"a page as a list of uploads":        {faultproxy.Rule{Path: "uploads", Status: 200, Page: page}, uploads, store.ErrForeign},
		"a proxy that finds nothing":         {faultproxy.Rule{Path: "there", Status: 404, Page: page}, stat, store.ErrForeign},
		"a proxy that finds nothing to read": {faultproxy.Rule{Path: "there", Status: 404, Page: page}, read, store.ErrForeign},
		"a HEAD that finds nothing":          {faultproxy.Rule{Method: http.MethodHead, Status: 404}, stat, nil},
		"a store that fails":                 {faultproxy.Rule{Path: "there", Status: 500}, stat, errAny},
	} {
		t.Run(name, func(t *testing.T) {
			server := startS3(t)
			proxy := faultproxy.NewHTTP(t, server.URL)
			s, err := store.Open(t.Context(), "s3://"+server.Bucket(t)+"/p/", store.S3Options{Endpoint: proxy.URL, RetryFor: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			put(t, s, "there", []byte("x"))
			proxy.Add(tc.rule)
			err = tc.ask(t.Context(), s)
			switch {
			case errors.Is(tc.want, errAny) && (err == nil || errors.Is(err, store.ErrNotExist)):
				t.Errorf("got %v, want an error that says nothing about the object", err)
			case !errors.Is(tc.want, errAny) && !errors.Is(err, tc.want):
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

var errAny = errors.New("any other")

func TestAJoinThatFailsInsideItsAnswerIsRepeated(t *testing.T) {
	server := startS3(t)
	proxy := faultproxy.NewHTTP(t, server.URL)
	s, err := store.Open(t.Context(), "s3://"+server.Bucket(t)+"/p/", store.S3Options{Endpoint: proxy.URL})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Add(faultproxy.Rule{Method: http.MethodPost, Path: "uploadId=", Status: 200, Code: "InternalError", Times: 2})
	data := random(t, store.MinPartSize+1)
	put(t, s, "large", data)
	if o, err := s.Stat(t.Context(), "large"); err != nil || o.Size != int64(len(data)) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestStoresTellTheirTime(t *testing.T) {
	suite(t, func(t *testing.T, s store.Store) {
		put(t, s, "x", []byte("x"))
		before := time.Now().Add(-2 * time.Second) // an HTTP date has no fractions
		now, err := s.Now(t.Context())
		if err != nil || now.Before(before) || now.After(time.Now().Add(2*time.Second)) {
			t.Errorf("%v, %v; want about %v", now, err, time.Now())
		}
		objects, err := s.List(t.Context(), "")
		if err != nil || len(objects) != 1 {
			t.Errorf("%v, %v; want that the look left nothing", objects, err)
		}
		if after, err := s.ListAfter(t.Context(), "", "x"); err != nil || len(after) != 0 {
			t.Errorf("after x: %v, %v", after, err)
		}
		if after, err := s.ListAfter(t.Context(), "", "w"); err != nil || len(after) != 1 {
			t.Errorf("after w: %v, %v", after, err)
		}
	})
}

func TestAFolderThatIsNotThereSaysNothingAboutItsObjects(t *testing.T) {
	dir := t.TempDir()
	s := store.NewFolder(filepath.Join(dir, "unmounted"))
	if _, err := s.Stat(t.Context(), "x"); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("got %v, want that it cannot be reached", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "away"), link); err != nil {
		t.Fatal(err)
	}
	here := store.NewFolder(dir)
	_, statErr := here.Stat(t.Context(), "link")
	_, _, getErr := here.Get(t.Context(), "link")
	if statErr == nil || getErr == nil || errors.Is(statErr, store.ErrNotExist) || errors.Is(getErr, store.ErrNotExist) {
		t.Errorf("a link to nothing: %v, %v; want no word about what it leads to", statErr, getErr)
	}
}

func TestAWalkThroughLinksEnds(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o700), os.Symlink("..", filepath.Join(dir, "a", "up")),
		os.WriteFile(filepath.Join(dir, "a", "x"), []byte("x"), 0o600), os.Symlink("a", filepath.Join(dir, "b"))); err != nil {
		t.Fatal(err)
	}
	objects, err := store.NewFolder(dir).List(t.Context(), "")
	if err != nil || len(objects) != 2 || objects[0].Key != "a/x" || objects[1].Key != "b/x" {
		t.Errorf("%v, %v; want a/x and b/x", objects, err)
	}
}
