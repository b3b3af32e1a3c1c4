package rfc9111

import (
	"maps"
	"net/http"
	"strconv"
	"time"
)

// Conditions returns the request fields that validate the stored response (RFC 9111 section
// 4.3.1); none if it has no validator.
func (r *Response) Conditions() http.Header {
	h := http.Header{}
	if r.ETag != "" {
		h["If-None-Match"] = []string{r.ETag}
	}
	if lines := r.Header["Last-Modified"]; len(lines) > 0 {
		h["If-Modified-Since"] = lines[:1]
	}
	return h
}

// ConfirmedBy reports whether a 304 with header h is about the stored response. It is not if
// it has another entity tag or another Last-Modified (RFC 9111 section 4.3.4). A cache that
// holds an older response sends such a 304, since its response was not modified after the
// date in the request.
func (r *Response) ConfirmedBy(h http.Header) bool {
	if tag := h.Get("Etag"); tag != "" && r.ETag != "" {
		return weakMatch(tag, r.ETag)
	}
	modified := headerDate(h, "Last-Modified")
	return modified.IsZero() || r.LastModified.IsZero() || modified.Equal(r.LastModified)
}

// Freshened returns the stored response updated by the header of a 304, or of the answer to a
// HEAD (RFC 9111 sections 3.2 and 4.3.4). The answer's fields replace the stored ones, except
// those that depend on the stored bytes. A private or no-store that is new in the answer counts even
// if a targeted field, which only the stored response has, takes precedence. delay and arrived are the
// answer's, as in [NewResponse].
func (r *Response) Freshened(h http.Header, delay time.Duration, arrived time.Time) *Response {
	merged := maps.Clone(r.Header)
	for name, lines := range h {
		switch name {
		case "Content-Encoding", "Content-Range", "Content-Length", "Age":
		default:
			merged[name] = lines
		}
	}
	fresh := Restore(r.Status, merged, initialAge(h, dateOf(h, arrived), delay, arrived), arrived)
	if own, targeted := responseDirectives(h); !targeted && (own.Private || own.NoStore) {
		was := parseDirectives(r.Header["Cache-Control"])
		fresh.Control.Private = fresh.Control.Private || own.Private && !was.Private
		fresh.Control.NoStore = fresh.Control.NoStore || own.NoStore && !was.NoStore
	}
	return fresh
}

// MatchesHead reports whether h, the header of a 200 in answer to a HEAD, is about the stored
// response, whose body has size bytes (RFC 9111 section 4.3.5). If so, the answer freshens
// the stored response; if not, it invalidates it.
func (r *Response) MatchesHead(h http.Header, size int64) bool {
	length := h.Get("Content-Length")
	return r.Status == http.StatusOK && h.Get("Etag") == r.ETag &&
		headerDate(h, "Last-Modified").Equal(r.LastModified) &&
		(r.ETag != "" || !r.LastModified.IsZero()) && (length == "" || length == strconv.FormatInt(size, 10))
}
