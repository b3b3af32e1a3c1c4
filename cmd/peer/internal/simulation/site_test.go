package simulation

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A page describes what the origin has under one URL: a function of the URL's number.
type page struct {
	url     int
	rule    rule
	size    int64
	chunked bool
	ranges  bool          // the origin knows Range for it
	period  time.Duration // after which it changes; 0 = only by writes
	common  int64         // bytes at the beginning that all its versions have
}

// A rule describes the caching fields of an answer, and what they allow.
type rule struct {
	header   string        // with "; " between fields
	lifetime time.Duration // for which it is fresh
	stale    time.Duration // for which it may be used while it is validated
	onError  time.Duration // for which it may stand in for an origin that fails
	tag, mod bool          // has ETag, Last-Modified
	fickle   bool          // of each other version all that is a second
	vary     string
}

var rules = []rule{
	{header: "Cache-Control: max-age=30", lifetime: 30 * time.Second, onError: time.Hour, tag: true},
	{header: "Cache-Control: max-age=3600", lifetime: time.Hour, onError: time.Hour, tag: true, mod: true},
	{header: "Cache-Control: max-age=5, stale-while-revalidate=10, stale-if-error=20", lifetime: 5 * time.Second,
		stale: 10 * time.Second, onError: 20 * time.Second, tag: true},
	{header: "Cache-Control: public, max-age=20", lifetime: 20 * time.Second, onError: time.Hour, mod: true},
	{header: "Cache-Control: public, max-age=60", lifetime: time.Minute, onError: time.Hour, mod: true, fickle: true},
	{header: "Cache-Control: max-age=10", lifetime: 10 * time.Second, onError: time.Hour},
	{header: "Cache-Control: max-age=600", lifetime: 10 * time.Minute, onError: time.Hour},
	{header: "Cache-Control: s-maxage=8, max-age=0", lifetime: 8 * time.Second, tag: true},
	{header: "Cache-Control: no-cache", tag: true},
	{header: "Cache-Control: no-store"},
	{header: "Cache-Control: private, max-age=60", tag: true},
	{header: "Cache-Control: max-age=2, must-revalidate", lifetime: 2 * time.Second, tag: true},
	{header: "Cache-Control: max-age=60\r\nVary: Accept-Encoding", lifetime: time.Minute, onError: time.Hour, tag: true, vary: "Accept-Encoding"},
	{header: "Cache-Control: max-age=60\r\nVary: X-Sort", lifetime: time.Minute, onError: time.Hour, tag: true, vary: "X-Sort"},
	{header: "", lifetime: 20 * time.Second, onError: time.Hour, mod: true}, // by heuristics, see modified
}

var sizes = []int64{0, 1, 300, 1000, 1000, 4000, 8192, 20_000, 65_535, 65_536, 65_537, 100_000, 100_000, 300_000, 700_000}

const (
	tinyURL = 1_000_000  // the first of pages that are small and never change
	hugeURL = 2_000_000  // the first of pages that differ from older versions only at their ends
	goneURL = 3_000_000  // the first of pages that are soon stale, and must be validated
	longURL = 4_000_000  // the first of long pages that stay fresh and never change
	deepURL = 5_000_000  // the first of pages so large that ranges are asked for in part
	dullURL = 6_000_000  // the first of long pages that stay fresh and have no validator
	lateURL = 7_000_000  // the first of pages that are soon stale, and may be served so while the origin is down
	coldURL = 8_000_000  // the first of pages of another origin, which never change
	walkURL = 9_000_000  // the first of pages that stay fresh and that several peers are asked for in turn
	lastURL = 10_000_000 // the first of pages that are asked for when all is over
)

func pageOf(url int) *page {
	switch {
	case url >= walkURL:
		return &page{url: url, rule: rules[1], size: 400}
	case url >= coldURL:
		h := mix(uint64(url))
		return &page{url: url, rule: rules[[]int{1, 6}[h%2]], size: []int64{1000, 100_000, 700_000}[h>>1%3], chunked: h&64 != 0, ranges: h&128 != 0}
	case url >= lateURL:
		return &page{url: url, rule: rules[5], size: 4000}
	case url >= dullURL:
		return &page{url: url, rule: rules[6], size: 450_000}
	case url >= deepURL:
		return &page{url: url, rule: rules[[]int{1, 3, 6, 1}[url/200%4]], size: 1_700_000, ranges: url/100%3 != 0, chunked: url/100%4 == 0}
	case url >= longURL:
		return &page{url: url, rule: rules[1], size: 700_000, ranges: url/100%2 == 0}
	case url >= goneURL:
		return &page{url: url, rule: rules[11], size: 200_000, ranges: url/100%2 == 0}
	case url >= hugeURL:
		// A body may end after a block because the next one is corrupt on the sender's disk. So the common
		// beginning of all versions is shorter than a block: otherwise they could not be told apart there.
		return &page{url: url, rule: rules[6], size: 450_000, common: 60 << 10}
	case url >= tinyURL:
		return &page{url: url, rule: rules[1], size: 10}
	}
	h := mix(uint64(url) + 77)
	p := &page{url: url, rule: rules[h%uint64(len(rules))]}
	h = mix(h)
	p.size = sizes[h%uint64(len(sizes))]
	h = mix(h)
	p.chunked, p.ranges = h&3 == 0, h&4 == 0
	p.period = []time.Duration{0, 0, 7 * time.Second, 19 * time.Second}[h>>3&3]
	if p.size >= 100_000 && h&32 == 0 && (p.rule.tag || p.rule.mod) { // else what was begun with one version may rightly end with another
		p.common = 64 << 10
	}
	return p
}

// A version names one representation of a page.
type version struct{ url, number, sort int }

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v.url, v.number, v.sort) }

func parseVersion(s string) (v version, ok bool) {
	_, err := fmt.Sscanf(s, "%d.%d.%d", &v.url, &v.number, &v.sort)
	return v, err == nil
}

func (p *page) length(v version) int64 {
	if p.size < 300 {
		return p.size
	}
	return p.size + int64(v.number%3) // the length may give a change away, and mostly does not
}

// fill writes the part of a version's body from an offset on.
func (v version) fill(b []byte, off int64) {
	if n := min(pageOf(v.url).common-off, int64(len(b))); n > 0 {
		version{v.url, 0, v.sort}.bytes(b[:n], off)
		b, off = b[n:], off+n
	}
	v.bytes(b, off)
}

// bytes writes bytes that differ from those of all other versions.
func (v version) bytes(b []byte, off int64) {
	key := mix(uint64(v.url)<<40 | uint64(v.number)<<8 | uint64(v.sort))
	var word [8]byte
	for len(b) > 0 {
		binary.LittleEndian.PutUint64(word[:], mix(key+uint64(off/8)))
		n := copy(b, word[off%8:])
		b, off = b[n:], off+int64(n)
	}
}

// is reports whether b is a part of the version's body.
func (v version) is(b []byte, off int64) bool {
	want := make([]byte, len(b))
	v.fill(want, off)
	return bytes.Equal(b, want)
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (v version) tag() string { return `"` + v.String() + `"` }

// modified returns the Last-Modified of a version. It differs by two seconds between versions, so
// that each has its own; the heuristic lifetime, a tenth of the age, stays below 20 s during a run.
func (v version) modified() time.Time {
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-100*time.Second + time.Duration(2*v.number)*time.Second)
}

// header returns the header of an answer, without status and length.
func (p *page) header(v version, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Date: %s\r\nX-Version: %s\r\nContent-Type: application/octet-stream\r\n", now.UTC().Format(http.TimeFormat), v)
	switch {
	case p.rule.fickle && v.number%2 == 1:
		b.WriteString("Cache-Control: max-age=1\r\n")
	case p.rule.header != "":
		b.WriteString(p.rule.header + "\r\n")
	}
	if p.rule.tag {
		b.WriteString("Etag: " + v.tag() + "\r\n")
	}
	if p.rule.mod {
		b.WriteString("Last-Modified: " + v.modified().Format(http.TimeFormat) + "\r\n")
	}
	if p.ranges && p.url >= deepURL && p.url < dullURL {
		b.WriteString("Accept-Ranges: bytes\r\n")
	}
	b.WriteString(p.tagField())
	b.WriteString(p.connectionFields())
	return b.String()
}

// sort returns the variant that a request selects.
func (p *page) sort(h http.Header) int {
	switch p.rule.vary {
	case "Accept-Encoding":
		return len(h.Get("Accept-Encoding")) % 3
	case "X-Sort":
		return len(h.Get("X-Sort")) % 3
	}
	return 0
}
