package cache

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A representation is what tells the bytes of one response from those of another.
type representation struct {
	status                       int
	etag, lastModified, encoding string
	date                         string
	length                       int64 // of the body; -1 = unknown
}

func representationOf(a *answer) representation { return describe(a.status, a.header, a.length) }

// representation returns that of the entry's response.
func (e *entry) representation(length int64) representation {
	return describe(e.status, e.header, length)
}

func describe(status int, h http.Header, length int64) representation {
	return representation{status: status, etag: h.Get("Etag"), lastModified: h.Get("Last-Modified"),
		encoding: h.Get("Content-Encoding"), date: h.Get("Date"), length: length}
}

// strong returns the validator under which a part of the representation can be
// asked for (RFC 9110 section 8.8): a strong entity tag, or the date of a
// modification that was over for a second. "" = none.
func (p *representation) strong() string {
	switch {
	case p.status != http.StatusOK:
		return ""
	case p.etag != "":
		if strings.HasPrefix(p.etag, "W/") {
			return ""
		}
		return p.etag
	}
	modified, ok := parseDate(p.lastModified)
	date, dated := parseDate(p.date)
	if !ok || !dated || date.Sub(modified) < time.Second {
		return ""
	}
	return p.lastModified
}

// same reports whether nothing in the description of another representation says
// that its bytes are others.
func (p *representation) same(o *representation) bool {
	return p.etag == o.etag && p.lastModified == o.lastModified && p.encoding == o.encoding &&
		(p.length < 0 || o.length < 0 || p.length == o.length)
}

// hasPart reports whether the header of a 206 is that of the part of p from an
// offset to its end. Such an answer need not repeat every field of the whole (RFC
// 9110 section 15.3.7), but the entity tag.
func (p *representation) hasPart(h http.Header, from int64) bool {
	rest, ok := strings.CutPrefix(h.Get("Content-Range"), "bytes ")
	span, total, _ := strings.Cut(rest, "/")
	first, last, _ := strings.Cut(span, "-")
	a, errA := strconv.ParseInt(first, 10, 64)
	z, errZ := strconv.ParseInt(last, 10, 64)
	n, errN := strconv.ParseInt(total, 10, 64)
	if !ok || errA != nil || errZ != nil || errN != nil || a != from || z != n-1 || p.length >= 0 && n != p.length {
		return false
	}
	unless := func(got, want string) bool { return got == "" || got == want }
	return p.strong() != "" && h.Get("Etag") == p.etag && unless(h.Get("Last-Modified"), p.lastModified) &&
		unless(h.Get("Content-Encoding"), p.encoding)
}
