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
// end -1 = the end of the representation. size is the length of the representation; -1 =
// unknown. A 206 need not repeat every field (RFC 9110 section 15.3.7), but it must have the
// entity tag.
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
			ContentRange: "bytes " + strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(last, 10) + "/" +
				strconv.FormatInt(size, 10)})
	}
	if len(parts) < 2 {
		return nil
	}
	return parts
}
