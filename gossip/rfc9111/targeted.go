package rfc9111

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"
)

// ClusterControl is a targeted cache control field (RFC 9213) for the caches of one cluster. An
// operator's rules write their decisions into it. Siblings get it; clients must not.
const ClusterControl = "Summarycache-Cache-Control"

// KeyField is a field of requests within a cluster, in which an operator's rules write what is part of the key beside
// the URL. Responses vary by it. Siblings get it; origins and clients must not.
const KeyField = "Summarycache-Key"

// targetedFields take precedence over Cache-Control, the first over the second (RFC 9213
// sections 2.2 and 3.1).
var targetedFields = [...]string{ClusterControl, "Cdn-Cache-Control"}

// forCaches are fields by which origins told the caches before them how long to keep a response, before RFC 9213. Other
// caches have obeyed them, so what they forbid is forbidden; they allow nothing that Cache-Control does not.
var forCaches = [...]string{"Surrogate-Control", "Edge-Control"}

// restrict adds what such fields forbid.
func (d *Directives) restrict(h http.Header) {
	for _, field := range forCaches {
		for item := range Members(h[field]) {
			item, _, _ = strings.Cut(item, ";") // for one cache only
			name, arg, _ := strings.Cut(strings.ToLower(item), "=")
			arg, _, _ = strings.Cut(arg, "+")
			switch age, ok := parseDelta(arg); {
			case name == "no-store", name == "bypass-cache":
				d.NoStore = true
			case name == "max-age" && ok && (age == 0 || max(d.SMaxAge, d.MaxAge) > age):
				d.SMaxAge = age
			}
		}
	}
	if h.Get("X-Accel-Expires") == "0" {
		d.NoStore = true
	}
}

// responseDirectives returns the directives that apply to a response in a shared cache.
// targeted reports that they come from a targeted field, which replaces both Cache-Control
// and Expires (RFC 9213 section 2.2). A targeted field is ignored if it is empty or malformed,
// or has a directive of the wrong type.
func responseDirectives(h http.Header) (d Directives, targeted bool) {
	for _, field := range targetedFields {
		lines := h[field]
		if len(lines) == 0 {
			continue
		}
		if dict, err := httpsfv.UnmarshalDictionary(lines); err == nil && len(dict.Names()) > 0 {
			if d, ok := targetedDirectives(dict); ok {
				return d, true
			}
		}
	}
	d = parseDirectives(h["Cache-Control"])
	d.restrict(h)
	return d, false
}

// targetedDirectives reads a structured dictionary: numbers of seconds are integers, all other
// values are booleans or strings of field names.
func targetedDirectives(dict *httpsfv.Dictionary) (d Directives, ok bool) {
	d = noDirectives()
	for _, name := range dict.Names() {
		member, _ := dict.Get(name)
		item, isItem := member.(httpsfv.Item)
		if !isItem {
			return d, false
		}
		v, number := item.Value.(int64)
		if d.delta(name) != nil && !number && item.Value != false {
			return d, false
		}
		switch v2 := item.Value.(type) {
		case bool:
			if v2 {
				d.set(name, "", false)
			}
		case int64:
			d.set(name, strconv.FormatInt(v, 10), true)
		case string:
			d.set(name, v2, true)
		}
	}
	return d, true
}
