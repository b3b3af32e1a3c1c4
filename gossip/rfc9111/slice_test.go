package rfc9111

import (
	"slices"
	"testing"
)

// The identities of slices are those of PROTOCOL.md, and those of the response for all that depends on its URL
// and its fields.
func TestSliceIdentity(t *testing.T) {
	for _, c := range []struct {
		id          string
		first, last int64
		want        string
		fields      []string
	}{
		{"GET http://h/a", 0, 1048575, "GET http://h/a\nslice:0-1048575", nil},
		{"GET http://h/a\nAccept-Encoding:gzip", 2097152, 3145727, "GET http://h/a\nAccept-Encoding:gzip\nslice:2097152-3145727", []string{"Accept-Encoding"}},
	} {
		id := SliceIdentity(c.id, c.first, c.last)
		url, fields := SplitIdentity(id)
		if id != c.want || !IsSlice(id) || IsSlice(c.id) || url != "http://h/a" || !slices.Equal(fields, c.fields) {
			t.Errorf("SliceIdentity(%q, %d, %d) = %q, of %q by %q", c.id, c.first, c.last, id, url, fields)
		}
		v := NewVariants()
		v.Stored(id)
		if rules := v.Rules(url); len(rules) != min(1, len(c.fields)) || !v.Has(url) || !slices.Equal(v.Identities(url), []string{id}) {
			t.Errorf("a stored slice has the rules %q and the identities %q", rules, v.Identities(url))
		}
		if v.Evicted(id); v.Has(url) || len(v.Rules(url)) > 0 {
			t.Error("an evicted slice is still known")
		}
	}
}
