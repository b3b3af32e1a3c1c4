package rfc9111

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Part is the part of a stored response that answers a request.
type Part struct {
	Status         int    // the response's, 206, 304 or 416
	Offset, Length int64  // of the body; Length -1 = all of a body of unknown length
	ContentRange   string // for 206 and 416
}

// PartFor decides whether a GET or HEAD that selects the stored response gets all of it,
// a part of it or a 304 (RFC 9111 section 4.3.2, RFC 9110 sections 13.2.2 and 14.2). size
// is the body's; -1 = not known yet.
func (r *Response) PartFor(req *http.Request, size int64) Part {
	whole := Part{Status: r.Status, Length: size}
	if r.Status != http.StatusOK {
		return whole
	}
	if r.notModified(req.Header) {
		return Part{Status: http.StatusNotModified}
	}
	lines := req.Header["Range"]
	if len(lines) != 1 || req.Method != http.MethodGet || size < 0 || !r.ifRange(req.Header) {
		return whole
	}
	first, last, ok := parseRange(lines[0], size)
	switch {
	case !ok:
		return whole
	case first >= size:
		return Part{Status: http.StatusRequestedRangeNotSatisfiable, ContentRange: "bytes */" + strconv.FormatInt(size, 10)}
	}
	return Part{Status: http.StatusPartialContent, Offset: first, Length: last - first + 1,
		ContentRange: FormatContentRange(first, last-first+1, size)}
}

// Fill writes into h the header of an answer that consists of a part of the stored response,
// which has that age (RFC 9111 sections 4 and 5.1). h must have none of these fields yet.
// The fields of a qualified no-cache are written only if the response was validated for this
// request (section 5.2.2.4). The caller adds Via and Cache-Status.
func (r *Response) Fill(h http.Header, p Part, age time.Duration, validated bool) {
	for name, lines := range r.Header {
		if name != "Content-Length" { // it describes how the response was received
			h[name] = lines
		}
	}
	if !validated {
		for _, name := range r.Control.NoCacheFields {
			delete(h, name)
		}
	}
	h["Age"] = []string{strconv.FormatInt(seconds(min(age, MaxDelta)), 10)}
	switch {
	case p.Status == http.StatusNotModified: // a 304 need not repeat these (RFC 9110 section 15.4.5)
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Range"} {
			delete(h, name)
		}
		if h["Etag"] != nil {
			delete(h, "Last-Modified")
		}
		return
	case p.ContentRange != "":
		h["Content-Range"] = []string{p.ContentRange}
		delete(h, "Content-Digest") // of the content of one message (RFC 9530 section 2), which this is not
		delete(h, "Content-Md5")
	}
	if p.Length >= 0 && p.Status != http.StatusNoContent {
		var room [20]byte
		length := strconv.AppendInt(room[:0], p.Length, 10)
		lines := r.Header["Content-Length"]
		if len(lines) != 1 || lines[0] != string(length) {
			lines = []string{string(length)}
		}
		h["Content-Length"] = lines
	}
}

// notModified evaluates If-None-Match or, without it, If-Modified-Since.
func (r *Response) notModified(req http.Header) bool {
	if lines, ok := req["If-None-Match"]; ok {
		for tag := range Members(lines) {
			if tag == "*" || r.ETag != "" && weakMatch(tag, r.ETag) {
				return true
			}
		}
		return false
	}
	since := headerDate(req, "If-Modified-Since")
	if since.IsZero() {
		return false
	}
	modified := r.LastModified
	if modified.IsZero() {
		modified = r.Date
	}
	return !modified.After(since)
}

// weakMatch is the weak comparison of entity tags (RFC 9110 section 8.8.3.2).
func weakMatch(a, b string) bool { return strings.TrimPrefix(a, "W/") == strings.TrimPrefix(b, "W/") }

// ifRange reports whether a Range applies: there is no If-Range, or its validator is a strong
// one and matches (RFC 9110 section 13.1.5).
func (r *Response) ifRange(req http.Header) bool {
	lines, ok := req["If-Range"]
	if !ok {
		return true
	}
	if len(lines) != 1 {
		return false
	}
	v := trim(lines[0])
	if strings.HasPrefix(v, `"`) || strings.HasPrefix(v, "W/") {
		return v == r.ETag && !strings.HasPrefix(v, "W/")
	}
	t, ok := ParseDate(v)
	return ok && r.strongDate() && t.Equal(r.LastModified)
}
