package cache

import "net/http"

// conditions are the request fields by which a stored response is validated
// (RFC 9111 section 4.3.1). A nil entry has none.
func (e *entry) conditions() http.Header {
	h := http.Header{}
	if e == nil {
		return h
	}
	if e.etag != "" {
		h["If-None-Match"] = []string{e.etag}
	}
	if lines := e.header["Last-Modified"]; len(lines) > 0 {
		h["If-Modified-Since"] = lines[:1]
	}
	return h
}

// confirmedBy reports whether a 304 speaks of the stored response: one with
// another entity tag does not, nor one with another date of modification (RFC 9111
// section 4.3.4). A sibling that holds an older response answers so, since that was
// not modified after the date that it is asked about.
func (e *entry) confirmedBy(a *answer) bool {
	if tag := a.header.Get("Etag"); tag != "" && e.etag != "" {
		return weakMatch(tag, e.etag)
	}
	modified := headerTime(a.header, "Last-Modified")
	return modified.IsZero() || e.modified.IsZero() || modified.Equal(e.modified)
}

// transferFields describe one transfer or its sender's clock, and are not stored.
var transferFields = []string{"Age", "Content-Length"}

// freshened returns the stored response with its header brought up to date by a
// 304, or by the answer to a HEAD (RFC 9111 sections 3.2 and 4.3.4): what the
// answer says replaces what was stored, but for what depends on the stored bytes.
func (e *entry) freshened(a *answer, via string) *entry {
	h := e.header.Clone()
	for name, lines := range a.header {
		switch name {
		case "Content-Encoding", "Content-Range", "Content-Length", "Age":
		default:
			h[name] = lines
		}
	}
	return newEntry(e.status, h, headerAge(a.header), a.delay, a.received, via)
}

// entryOf describes a whole response that is to be stored. It takes over the
// answer's header.
func entryOf(a *answer, via string) *entry {
	age := headerAge(a.header)
	for _, name := range transferFields {
		delete(a.header, name)
	}
	return newEntry(a.status, a.header, age, a.delay, a.received, via)
}
