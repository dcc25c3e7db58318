package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// repositoryFlags are the settings of a repository beside its url, and the
// flags that override them.
func repositoryFlags() map[string]string {
	return map[string]string{
		"endpoint": "s3-endpoint", "region": "s3-region", "addressing": "s3-addressing", "ca": "s3-ca-file",
		"insecureSkipVerify": "s3-insecure-skip-verify", "checksum": "s3-checksum", "sse": "s3-sse", "profile": "s3-profile",
		"proxy": "s3-proxy", "retryFor": "s3-retry-for", "encryptTo": "encrypt-to", "identity": "identity",
		"trust": "trust", "signWith": "sign-with", "signPasswordFile": "sign-password-file",
		"keepLast": "keep-last", "keepHourly": "keep-hourly", "keepDaily": "keep-daily", "keepWeekly": "keep-weekly",
		"keepMonthly": "keep-monthly", "keepYearly": "keep-yearly", "keepWithin": "keep-within", "maxSize": "max-size",
		"keepByMember": "keep-by-member",
	}
}

// RepositoryKey returns the name that a setting of a repository has in the
// configuration file.
func RepositoryKey(flag string) string {
	for key, name := range repositoryFlags() {
		if name == flag {
			return key
		}
	}
	return flag
}

func unknownRepositoryKey(repository string, f field) error {
	keys := append([]string{"url"}, slices.Sorted(maps.Keys(repositoryFlags()))...)
	err := at(f.line(), fmt.Errorf("%s: unknown key %q", repository, f.name))
	return hint.With(err, "%s", Suggestion(f.name, keys, "the keys are "+strings.Join(keys, ", ")))
}
