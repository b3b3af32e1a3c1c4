package rfc9111

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// parseRange reads a Range of one part, of a body of size bytes. It isn't ok if
// the field is to be ignored: another unit, several parts, broken. first >= size
// means that the range can't be satisfied.
func parseRange(s string, size int64) (first, last int64, ok bool) {
	unit, set, found := strings.Cut(s, "=")
	if !found || !strings.EqualFold(trim(unit), "bytes") {
		return 0, 0, false
	}
	a, b, found := strings.Cut(trim(set), "-")
	if !found {
		return 0, 0, false
	}
	if a == "" { // the last b bytes
		n, ok := parsePosition(b)
		if !ok {
			return 0, 0, false
		}
		if n == 0 || size == 0 {
			return size, size, true
		}
		return max(0, size-n), size - 1, true
	}
	if first, ok = parsePosition(a); !ok {
		return 0, 0, false
	}
	last = size - 1
	if b != "" {
		n, ok := parsePosition(b)
		if !ok || n < first {
			return 0, 0, false
		}
		last = min(last, n)
	}
	return first, last, true
}

// parsePosition reads digits; a number too large counts as the largest.
func parsePosition(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		n = 1<<63 - 1
	}
	return n, true
}

// StrongValidator returns that under which a part of a response of 200 or 206 can be asked for
// from elsewhere, in Range and If-Range (RFC 9110 section 8.8): a strong entity tag,
// or the date of a modification that was over for a second. "" = none.
func (r *Response) StrongValidator() string {
	switch {
	case r.Status != http.StatusOK && r.Status != http.StatusPartialContent || strings.HasPrefix(r.ETag, "W/"):
		return ""
	case r.ETag != "":
		return r.ETag
	case r.strongDate():
		return r.Header.Get("Last-Modified")
	}
	return ""
}

// strongDate reports whether the representation was left alone for a second at
// least when it was sent (RFC 9110 section 8.8.2.2), and has no weak entity tag, which
// says that its bytes may be others though the date is the same.
func (r *Response) strongDate() bool {
	return !r.LastModified.IsZero() && r.Date.Sub(r.LastModified) >= time.Second && !strings.HasPrefix(r.ETag, "W/")
}

// SameBytes reports whether nothing in the description of another response says that
// its bytes are others: neither the validators nor the coding.
func (r *Response) SameBytes(o *Response) bool {
	return r.Status == o.Status && r.ETag == o.ETag && r.sameDate(o.Header) &&
		r.Header.Get("Content-Encoding") == o.Header.Get("Content-Encoding")
}

// sameDate reports whether a header with the response's entity tag has the same
// Last-Modified. Where a strong tag says that the bytes are the same, one of the two may
// lack it: some programs send it with a part only, or with the whole only.
func (r *Response) sameDate(h http.Header) bool {
	mine, other := r.Header.Get("Last-Modified"), h.Get("Last-Modified")
	return mine == other || (mine == "" || other == "") && r.ETag != "" && !strings.HasPrefix(r.ETag, "W/")
}

// HasRest reports whether the header of a 206 is that of the bytes from an offset up to an
// end, -1 = that of the whole, of the representation that the response, a whole one or a 206
// itself, is of (RFC 9111 section 3.4). The whole has size bytes, -1 = unknown.
// Such an answer need not repeat every field of the other (RFC 9110 section 15.3.7),
// but the entity tag.
func (r *Response) HasRest(h http.Header, offset, end, size int64) bool {
	rest, ok := strings.CutPrefix(h.Get("Content-Range"), "bytes ")
	span, total, _ := strings.Cut(rest, "/")
	first, last, _ := strings.Cut(span, "-")
	a, errA := strconv.ParseInt(first, 10, 64)
	z, errZ := strconv.ParseInt(last, 10, 64)
	n, errN := strconv.ParseInt(total, 10, 64)
	if end < 0 {
		end = n
	}
	if !ok || errA != nil || errZ != nil || errN != nil || a != offset || z != end-1 || end > n || size >= 0 && n != size {
		return false
	}
	coding := h.Get("Content-Encoding")
	return r.StrongValidator() != "" && h.Get("Etag") == r.ETag && (h.Get("Last-Modified") == "" || r.sameDate(h)) &&
		(coding == "" || coding == r.Header.Get("Content-Encoding"))
}
