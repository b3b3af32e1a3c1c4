package rfc9111

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// FuzzDirectives: whatever the field contains, times are in range, and a list means the same in
// one line as in two.
func FuzzDirectives(f *testing.F) {
	for _, s := range []string{"max-age=60", `no-cache="a, b", private`, `max-age="6\"0`, "s-maxage=99999999999999999999", ",,=,=\"", "max-stale, max-stale=3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := parseDirectives([]string{s})
		for _, v := range []time.Duration{d.MaxAge, d.SMaxAge, d.MinFresh, d.MaxStale, d.StaleWhileRevalidate, d.StaleIfError} {
			if v != Unset && (v < 0 || v > MaxDelta && v != anyStale) {
				t.Fatalf("%q gives %v", s, v)
			}
		}
		if !strings.Contains(s, `"`) {
			if split := parseDirectives(strings.Split(s, ",")); !reflect.DeepEqual(split, d) {
				t.Fatalf("%q: one line %+v, split %+v", s, d, split)
			}
		}
	})
}

// FuzzIdentity: different variants have different identities, which SplitIdentity takes apart again.
func FuzzIdentity(f *testing.F) {
	f.Add("X-A", "X-B", "1", "2", "1", "3")
	f.Add("Accept-Encoding", "Cookie", "gzip, br", "a=b", "gzip", "br\na=b")
	f.Fuzz(func(t *testing.T, f1, f2, a1, a2, b1, b2 string) {
		fields := VaryFields(http.Header{"Vary": {f1, f2}})
		for _, name := range fields {
			if strings.ContainsAny(name, ":\n") {
				return // no field name
			}
		}
		if len(fields) != 2 || strings.ContainsAny(a1+a2+b1+b2, "\r\n") {
			return
		}
		a := Identity("http://x/", fields, http.Header{fields[0]: {a1}, fields[1]: {a2}})
		b := Identity("http://x/", fields, http.Header{fields[0]: {b1}, fields[1]: {b2}})
		same := normalize(fields[0], []string{a1}) == normalize(fields[0], []string{b1}) &&
			normalize(fields[1], []string{a2}) == normalize(fields[1], []string{b2})
		if (a == b) != same {
			t.Fatalf("%q and %q", a, b)
		}
		if url, got := SplitIdentity(a); url != "http://x/" || !reflect.DeepEqual(got, fields) {
			t.Fatalf("SplitIdentity(%q) = %q, %q", a, url, got)
		}
	})
}

// FuzzRange: a range that is accepted lies within the body.
func FuzzRange(f *testing.F) {
	f.Add("bytes=0-1", int64(10))
	f.Add("bytes=-5", int64(3))
	f.Add("bytes=99999999999999999999-", int64(1))
	f.Fuzz(func(t *testing.T, s string, size int64) {
		if size < 0 {
			return
		}
		first, last, ok := parseRange(s, size)
		if ok && first < size && (first < 0 || last < first || last >= size) {
			t.Fatalf("parseRange(%q, %d) = %d, %d", s, size, first, last)
		}
	})
}

// FuzzDate: a date that is accepted equals its canonical form.
func FuzzDate(f *testing.F) {
	f.Add("Sun, 06 Nov 1994 08:49:37 GMT")
	f.Add("Sunday, 06-Nov-94 08:49:37 GMT")
	f.Add("Sun Nov  6 08:49:37 1994")
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := ParseDate(s)
		if slow, known := parseAnyDate(s); ok != known || ok && !d.Equal(slow) {
			t.Fatalf("ParseDate(%q) = %v, %v; parseAnyDate %v, %v", s, d, ok, slow, known)
		}
		if !ok {
			return
		}
		if again, ok := ParseDate(d.Format(http.TimeFormat)); !ok || !again.Equal(d) {
			t.Fatalf("ParseDate(%q) = %v, again %v %v", s, d, again, ok)
		}
	})
}
