package rfc9111

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestIdentities: identities are those of PROTOCOL.md, section 17, which all caches of a cluster must form alike.
func TestIdentities(t *testing.T) {
	var all []struct {
		Name, URL string
		Vary      []string            // lines of the field in the response
		Fields    map[string][]string // of the request
		Slice     []int64             // its first byte, and the last; empty = none
		Identity  string
	}
	b, err := os.ReadFile("testdata/identities.json")
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil || len(all) < 17 {
		t.Fatalf("testdata/identities.json: %v", err)
	}
	for _, c := range all {
		u, err := url.Parse(c.URL)
		if err != nil {
			t.Fatal(err)
		}
		fields := VaryFields(http.Header{"Vary": c.Vary})
		id := Identity(CanonicalURL(u), fields, http.Header(c.Fields))
		if len(c.Slice) > 0 {
			id = SliceIdentity(id, c.Slice[0], c.Slice[1])
		}
		if id != c.Identity {
			t.Errorf("%s: the identity is %q, want %q", c.Name, id, c.Identity)
		}
		if len(fields) == 0 && PlainIdentity(u) != id {
			t.Errorf("%s: PlainIdentity = %q, want %q", c.Name, PlainIdentity(u), id)
		}
		if to, f := SplitIdentity(id); to != CanonicalURL(u) || !slices.Equal(f, fields) {
			t.Errorf("SplitIdentity(%q) = %q, %q", id, to, f)
		}
	}
}

// TestVariants: the sets of fields follow the stored responses, also when they are replaced.
func TestVariants(t *testing.T) {
	r := NewVariants()
	a1, a2, b := "GET u\nA:1", "GET u\nA:2", "GET u\nA:1\nB:1"
	check := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, fields := range r.Rules("u") {
			got = append(got, strings.Join(fields, "+"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: rules %q, want %q", when, got, want)
		}
	}
	r.Stored("GET u")
	check("plain")
	r.Stored(a1)
	r.Stored(a2)
	r.Stored(b)
	check("three variants", "A", "A+B")
	r.Stored(a1)
	r.Evicted(a1)
	check("one replaced", "A", "A+B")
	if n := len(r.Identities("u")); n != 3 {
		t.Errorf("%d identities", n)
	}
	r.Evicted(a1)
	check("one gone", "A", "A+B")
	r.Evicted(a2)
	check("both gone", "A+B")
	r.Evicted(b)
	check("all gone")
	if n := len(r.shard("u").m); n != 0 {
		t.Errorf("%d URLs are left", n)
	}
}

func TestHints(t *testing.T) {
	var h Hints
	join := func(url string) string {
		var s []string
		for _, g := range h.Guesses(url) {
			s = append(s, strings.Join(g, "+"))
		}
		return strings.Join(s, " ")
	}
	if got := join("http://x/1"); got != "Accept-Encoding" {
		t.Errorf("guesses of nothing: %q", got)
	}
	for _, f := range []string{"A", "B", "C", "A", "D", "E"} {
		h.Learn("http://x/1", []string{f})
	}
	if got := join("http://x/2"); got != "E D A C Accept-Encoding" {
		t.Errorf("guesses: %q", got)
	}
	if got := join("http://y/2"); got != "Accept-Encoding" {
		t.Errorf("guesses for another host: %q", got)
	}
}

// TestHintsAreBounded: however many hosts there are, and whichever comes again, few are remembered.
func TestHintsAreBounded(t *testing.T) {
	var h Hints
	for i := range 3 * maxHintHosts {
		for _, host := range []int{i, i / 2, 0} {
			url := fmt.Sprintf("http://h%d/", host)
			h.Learn(url, []string{"A"})
			if len(h.m) > maxHintHosts {
				t.Fatalf("%d hosts are remembered, want at most %d", len(h.m), maxHintHosts)
			}
			if got := h.Guesses(url); len(got) == 0 || got[0][0] != "A" {
				t.Fatalf("guesses for the host just learnt: %v", got)
			}
		}
	}
}

// TestToken tries every byte in every place of a name (RFC 9110 section 5.6.2).
func TestToken(t *testing.T) {
	const others = "!#$%&'*+-.^_`|~"
	for b := range 256 {
		c := byte(b)
		want := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(others, c) >= 0
		for _, s := range []string{string([]byte{c}), "a" + string([]byte{c}), string([]byte{c}) + "a", "a" + string([]byte{c}) + "a"} {
			if IsToken(s) != want {
				t.Errorf("IsToken(%q) = %v, want %v", s, IsToken(s), want)
			}
		}
	}
	if IsToken("") {
		t.Error(`IsToken("") = true`)
	}
}

func TestParseDate(t *testing.T) {
	want := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	for _, s := range []string{"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
		"sun, 06 nov 1994 08:49:37 gmt", "Mon, 06 Nov 1994 08:49:37 GMT"} {
		if got, ok := ParseDate(s); !ok || !got.Equal(want) {
			t.Errorf("ParseDate(%q) = %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "0", "-1", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun,  06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC",
		"Sun, 06 Nov 1994 08:49:37", "Sun, 32 Nov 1994 08:49:37 GMT", "06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT"} {
		if got, ok := ParseDate(s); ok {
			t.Errorf("ParseDate(%q) = %v", s, got)
		}
	}
}
