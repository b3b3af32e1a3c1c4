package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// authorization is the member of a [Rule.Key] by which holders of a token share responses among themselves.
const authorization = "header.Authorization"

// key returns what is part of the key of a request. What may match counts, too, up to the first rule that does. decided
// gets the rules.
func (s Set) key(f facts, decided func(*Rule)) (key []string) {
	for i := range s {
		r := &s[i]
		if r.Key == nil {
			continue
		}
		t := r.match(f)
		if t != no {
			key = append(key, r.Key...)
			decided(r)
		}
		if t == yes {
			break
		}
	}
	return key
}

// keyed returns the value of [rfc9111.KeyField] for a request. Of a token it has a hash, since keys are stored and
// shown.
func keyed(f facts, key []string) string {
	parts := make([]string, len(key))
	for i, part := range key {
		in, name, _ := strings.Cut(part, ".")
		value, _ := find(f, in, name)
		if part == authorization && value != "" {
			sum := sha256.Sum256([]byte(value))
			value = hex.EncodeToString(sum[:16])
		}
		parts[i] = part + "=" + url.QueryEscape(value)
	}
	return strings.Join(parts, "&")
}

// hasKey reports whether a part of the key of a request has this value.
func (f facts) hasKey(part, value string) bool {
	parts := strings.Split(f.q.Header.Get(rfc9111.KeyField), "&")
	return slices.Contains(parts, part+"="+url.QueryEscape(value))
}

// impersonal reports whether the origin got no cookie but those in the key.
func (f facts) impersonal() bool {
	for pair := range cookies(f.q.Header) {
		if name, value, _ := strings.Cut(pair, "="); !f.hasKey("cookie."+name, value) {
			return false
		}
	}
	return true
}

// byToken reports whether the token of the request is part of its key.
func (f facts) byToken() bool {
	return strings.Contains("&"+f.q.Header.Get(rfc9111.KeyField), "&"+authorization+"=")
}

// told replaces the name of the key in a Vary by what clients know it as.
func told(h http.Header, key []string) {
	var names []string
	for _, name := range rfc9111.VaryFields(h) {
		if name != rfc9111.KeyField {
			names = append(names, name)
			continue
		}
		for _, part := range key {
			if in, field, _ := strings.Cut(part, "."); in == "cookie" {
				names = append(names, "Cookie")
			} else {
				names = append(names, field)
			}
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); h["Vary"] != nil {
		h["Vary"] = []string{strings.Join(names, ", ")}
	}
}
