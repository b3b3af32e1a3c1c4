package rfc9111

import (
	"net/http"
	"strconv"

	"github.com/dunglas/httpsfv"
)

// ClusterControl is the targeted cache control field for these caches alone (RFC 9213), in
// which an operator's rules write what they decide. It is for siblings, and no client's to see.
const ClusterControl = "Summarycache-Cache-Control"

// targetedFields are the targeted cache control fields that are obeyed in preference to
// Cache-Control, the first before the second (RFC 9213 sections 2.2 and 3.1).
var targetedFields = [...]string{ClusterControl, "Cdn-Cache-Control"}

// responseDirectives returns the directives that apply to a response in a shared
// cache. A valid targeted field replaces Cache-Control and Expires altogether
// (RFC 9213 section 2.2), which targeted reports; an empty or broken one, or one
// with a directive of the wrong type, is ignored.
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
	return parseDirectives(h["Cache-Control"]), false
}

// targetedDirectives reads a structured dictionary: delta-seconds are integers,
// the rest is true or a string of field names.
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
