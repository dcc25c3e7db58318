package secrets

import (
	"net/url"
	"testing"
)

// SARIF wants a URI reference, whatever the name of a file.
func TestSourceURI(t *testing.T) {
	for source, want := range map[string]string{
		"/var/lib/etcd":             "/var/lib/etcd",
		"/data/a b#c?d%41.db":       "/data/a%20b%23c%3Fd%2541.db",
		"odd:name.db":               "./odd:name.db",
		"/umlaut-\u00e4.db":         "/umlaut-%C3%A4.db",
		"/line\nend":                "/line%0Aend",
		"https://a:2379,https://b:": "https://a:2379",
		"https://u:pw@a:2379":       "https://a:2379",
		"s3://bucket/a b/":          "s3://bucket/a%20b/",
	} {
		got := sourceURI(source)
		if _, err := url.Parse(got); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", source, got, err, want)
		}
	}
}
