package rfc9111

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// parseRange reads a Range of one part, for a body of size bytes. ok is false if the field
// must be ignored: another unit, several parts, or malformed. first >= size means that the
// range cannot be satisfied.
func parseRange(s string, size int64) (first, last int64, ok bool) {
	a, b, found := cutRange(s)
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

// cutRange returns what stands before and after the hyphen of a Range in bytes.
func cutRange(s string) (first, last string, ok bool) {
	unit, set, _ := strings.Cut(s, "=")
	if !strings.EqualFold(trim(unit), "bytes") {
		return "", "", false
	}
	return strings.Cut(trim(set), "-")
}

// RangeStart returns the first byte of the Range of one part that a request's header has; -1 = it names the last bytes.
// It isn't ok if there is none.
func RangeStart(h http.Header) (first int64, ok bool) {
	lines := h["Range"]
	if len(lines) != 1 {
		return 0, false
	}
	a, b, ok := cutRange(lines[0])
	switch {
	case !ok, strings.Contains(b, ","):
		return 0, false
	case a == "" && b != "":
		return -1, true
	}
	return parsePosition(a)
}

// ContentRange returns the bytes that a 206 has, from first to before end, and the size of the whole representation;
// -1 = unknown. end = 0: the field is missing or malformed.
func ContentRange(h http.Header) (first, end, size int64) {
	rest, ok := strings.CutPrefix(h.Get("Content-Range"), "bytes ")
	span, total, _ := strings.Cut(rest, "/")
	a, z, _ := strings.Cut(span, "-")
	n := [3]int64{-1, -1, -1}
	for i, s := range [...]string{a, z, total} {
		v, err := strconv.ParseUint(s, 10, 63)
		if n[i] = int64(v); err != nil {
			n[i] = -1
			ok = ok && i == 2 && s == "*"
		}
	}
	first, end, size = n[0], n[1]+1, n[2]
	if !ok || first >= end || end <= 0 || size >= 0 && end > size {
		return 0, 0, -1
	}
	return first, end, size
}

// FormatContentRange returns the Content-Range of n bytes of a representation of that size, from first on.
func FormatContentRange(first, n, size int64) string {
	part := strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(first+n-1, 10)
	return "bytes " + part + "/" + strconv.FormatInt(size, 10)
}

// parsePosition reads a decimal number; one that is too large becomes the largest int64.
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

// StrongValidator returns the validator of a 200 or 206 by which a cache can request a part of the
// same representation from another server, in If-Range (RFC 9110 section 8.8): a strong entity
// tag, or a Last-Modified that is strong. "" = none.
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

// strongDate reports whether Last-Modified is a strong validator: it is at least a second
// before Date (RFC 9110 section 8.8.2.2), and there is no weak entity tag. A weak tag means
// that the bytes may differ although the date is the same.
func (r *Response) strongDate() bool {
	return !r.LastModified.IsZero() && r.Date.Sub(r.LastModified) >= time.Second && !strings.HasPrefix(r.ETag, "W/")
}

// SameBytes reports whether o has the same status, validators and content coding, so that
// nothing in its header says that its bytes differ.
func (r *Response) SameBytes(o *Response) bool {
	return r.Status == o.Status && r.ETag == o.ETag && r.sameDate(o.Header) &&
		r.Header.Get("Content-Encoding") == o.Header.Get("Content-Encoding")
}

// sameDate reports whether h, which has the response's entity tag, has the same
// Last-Modified. If the tag is strong, one of the two headers may lack the date: some servers
// send it with partial responses only, or with complete ones only.
func (r *Response) sameDate(h http.Header) bool {
	mine, other := r.Header.Get("Last-Modified"), h.Get("Last-Modified")
	return mine == other || (mine == "" || other == "") && r.ETag != "" && !strings.HasPrefix(r.ETag, "W/")
}

// HasRest reports whether h, the header of a 206, is for the bytes from offset to end, exclusive,
// of the same representation as the response, which may be a 206 itself (RFC 9111 section 3.4).
// end -1 = the end of the representation, which must be stated then. size is the length of the representation; -1 =
// unknown. A 206 need not repeat every field (RFC 9110 section 15.3.7), but it must have the
// entity tag.
func (r *Response) HasRest(h http.Header, offset, end, size int64) bool {
	first, to, total := ContentRange(h)
	if end < 0 {
		end = total
	}
	if to == 0 || first != offset || to != end || size >= 0 && (to > size || total >= 0 && total != size) {
		return false
	}
	coding := h.Get("Content-Encoding")
	return r.StrongValidator() != "" && h.Get("Etag") == r.ETag && (h.Get("Last-Modified") == "" || r.sameDate(h)) &&
		(coding == "" || coding == r.Header.Get("Content-Encoding"))
}

// maxRanges bounds the parts of an answer. dnf asks for as many (zchunk), and what is given the whole asks again.
const maxRanges = 256

// perRange is about what a part of an answer has beside its bytes.
const perRange = 128

// PartsFor returns the parts that answer a Range of several, in the order of the request (RFC 9110 section 14.2); nil =
// the request is answered as [Response.PartFor] says. So it is if there are more than 256 of them, if the answer would be longer than
// the body (but 16 are always answered), if they overlap or
// come in another order than in the body, or if none but one can be satisfied. size is the body's.
func (r *Response) PartsFor(req *http.Request, size int64) (parts []Part) {
	lines := req.Header["Range"]
	if len(lines) != 1 || !strings.Contains(lines[0], ",") || r.Status != http.StatusOK ||
		req.Method != http.MethodGet || size <= 0 ||
		r.notModified(req.Header) || !r.ifRange(req.Header) {
		return nil
	}
	unit, set, _ := strings.Cut(lines[0], "=")
	all, end := strings.Split(set, ","), int64(0)
	if n := int64(len(all)); n > maxRanges || n > 16 && n*perRange > size {
		return nil
	}
	for _, one := range all {
		first, last, ok := parseRange(unit+"="+one, size)
		switch {
		case !ok:
			return nil
		case first >= size: // this one can't be satisfied
			continue
		case first < end:
			return nil
		}
		end = last + 1
		parts = append(parts, Part{Status: http.StatusPartialContent, Offset: first, Length: last - first + 1,
			ContentRange: FormatContentRange(first, last-first+1, size)})
	}
	if len(parts) < 2 {
		return nil
	}
	return parts
}
