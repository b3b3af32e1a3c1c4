package cache

import (
	"net/http"
	"strconv"

	"github.com/dunglas/httpsfv"
)

// targetedField is the targeted cache control field that this cache obeys in
// preference to Cache-Control (RFC 9213 section 3.1).
const targetedField = "Cdn-Cache-Control"

// responseDirectives returns the directives that apply to a response in this
// cache. A valid targeted field replaces Cache-Control and Expires altogether
// (RFC 9213 section 2.2), which targeted reports; an empty or broken one is
// ignored.
func responseDirectives(h http.Header) (d directives, targeted bool) {
	if lines := h[targetedField]; len(lines) > 0 {
		if dict, err := httpsfv.UnmarshalDictionary(lines); err == nil && len(dict.Names()) > 0 {
			return targetedDirectives(dict), true
		}
	}
	return parseDirectives(h["Cache-Control"]), false
}

// targetedDirectives reads a structured dictionary: delta-seconds are integers,
// the rest is true or a string of field names. Members of other types count as
// invalid arguments.
func targetedDirectives(dict *httpsfv.Dictionary) directives {
	d := noDirectives()
	for _, name := range dict.Names() {
		member, _ := dict.Get(name)
		item, ok := member.(httpsfv.Item)
		if !ok {
			d.set(name, "", true)
			continue
		}
		switch v := item.Value.(type) {
		case bool:
			if v {
				d.set(name, "", false)
			}
		case int64:
			d.set(name, strconv.FormatInt(v, 10), true)
		case string:
			d.set(name, v, true)
		default:
			d.set(name, "", true)
		}
	}
	return d
}
