package kube

import (
	"bytes"
	"crypto/aes"
	"unicode"
	"unicode/utf8"
)

const (
	gcmTag         = 16
	secretboxNonce = 24
	secretboxTag   = 16
	// nameAhead is how far a second colon is looked for, which would make it
	// unclear where the name of a key ends.
	nameAhead = 64
)

// split reads the mark k8s:enc:PROVIDER:VERSION:NAME: and returns what follows
// it. A mark that no API server writes makes the value Unknown, and so does
// what is too short for its cipher.
func (c *EncryptionConfig) split(value []byte, complete bool) (Storage, []byte) {
	rest := value[len(encryptedMagic):]
	provider, after, ok := cutName(rest)
	if !ok {
		return Storage{Cut: !complete && mayEndInName(rest)}, nil
	}
	version, rest, ok := cutName(after)
	if !ok {
		return Storage{Cut: !complete && mayEndInName(after)}, nil
	}
	var s Storage
	var sealed []byte
	switch provider + ":" + version {
	case "aescbc:v1", "aesgcm:v1", "secretbox:v1":
		name, after, ok := c.cutKeyName(provider, rest)
		if !ok {
			return Storage{Cut: !complete && mayEndInName(rest)}, nil
		}
		s, sealed = Storage{Format: Encrypted, Provider: provider, Key: name}, after
	case "kms:v1", "kms:v2":
		name, after, ok := cutName(rest)
		if !ok {
			return Storage{Cut: !complete && mayEndInName(rest)}, nil
		}
		s, sealed = Storage{Format: Encrypted, Provider: provider + ":" + version + ":" + name}, after
		if e, err := parseEnvelope(sealed); err == nil && version == "v2" {
			s.Key = e.keyID
		}
	default:
		return Storage{}, nil
	}
	if complete && !fits(provider+":"+version, sealed) {
		return Storage{}, nil
	}
	return s, sealed
}

// fits reports whether sealed can be what a provider made of an object.
func fits(provider string, sealed []byte) bool {
	switch provider {
	case "aescbc:v1":
		return len(sealed) >= 2*aes.BlockSize && len(sealed)%aes.BlockSize == 0
	case "aesgcm:v1":
		return len(sealed) > gcmNonce+gcmTag
	case "secretbox:v1":
		return len(sealed) > secretboxNonce+secretboxTag
	case "kms:v1":
		_, data, ok := splitV1(sealed)
		return ok && len(data) > gcmNonce+gcmTag
	case "kms:v2":
		e, err := parseEnvelope(sealed)
		least := gcmNonce + gcmTag
		if e.seed {
			least += hkdfInfo
		}
		return err == nil && len(e.data) > least
	}
	return false
}

// cutKeyName cuts the name of a key off what follows the mark of a provider.
// Names may hold colons, so that those of the configuration come first. Where
// none fits and it is not clear which colon ends the name, the name is "".
func (c *EncryptionConfig) cutKeyName(provider string, b []byte) (name string, rest []byte, ok bool) {
	configured := ""
	for _, known := range c.keyNames(provider) {
		if len(known) > len(configured) && len(b) > len(known) && b[len(known)] == ':' && string(b[:len(known)]) == known {
			configured = known
		}
	}
	if configured != "" {
		return configured, b[len(configured)+1:], true
	}
	name, rest, ok = cutName(b)
	if !ok {
		return "", nil, false
	}
	second := bytes.IndexByte(rest[:min(len(rest), nameAhead)], ':')
	if second < 1 || !isPlainText(rest[:second]) {
		return name, rest, true
	}
	if longer := rest[second+1:]; provider == AESCBC && fits("aescbc:v1", rest) != fits("aescbc:v1", longer) {
		if fits("aescbc:v1", rest) {
			return name, rest, true
		}
		return name + ":" + string(rest[:second]), longer, true
	}
	return "", rest, true
}

// keyNames lists the names of the keys that the configuration has for a provider.
func (c *EncryptionConfig) keyNames(provider string) (names []string) {
	if c == nil {
		return nil
	}
	for _, rule := range c.Rules {
		for _, p := range rule.Providers {
			for _, k := range p.Keys {
				if p.Kind == provider {
					names = append(names, k.Name)
				}
			}
		}
	}
	return names
}

// cutName cuts off a name up to the next colon.
func cutName(b []byte) (string, []byte, bool) {
	i := bytes.IndexByte(b[:min(len(b), maxName+1)], ':')
	if i <= 0 || !isPlainText(b[:i]) {
		return "", nil, false
	}
	return string(b[:i]), b[i+1:], true
}

// mayEndInName reports whether b, which has no whole name, may be the beginning of one.
func mayEndInName(b []byte) bool {
	for len(b) > 0 && !utf8.FullRune(b[lastRune(b):]) {
		b = b[:lastRune(b)]
	}
	return len(b) <= maxName && bytes.IndexByte(b, ':') < 0 && isPlainText(b)
}

// lastRune returns where the last character of b begins.
func lastRune(b []byte) int {
	for i := len(b) - 1; i > 0; i-- {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return 0
}

// isPlainText reports whether b is text that shows as it is: what is not may be
// anything, a part of an object's content included.
func isPlainText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexFunc(b, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
