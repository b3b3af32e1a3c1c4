package cache

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answerPlan is what of a stored response is sent.
type answerPlan struct {
	status         int
	offset, length int64  // of the body; length -1 = all of it, however long
	contentRange   string // for 206 and 416
}

// plan decides whether r gets the whole of a response, a part or a 304 (RFC 9111
// section 4.3.2, RFC 9110 sections 13.2.2 and 14.2). size is the body's, -1 if it
// isn't known yet.
func plan(r *request, e *entry, size int64) answerPlan {
	whole := answerPlan{status: e.status, length: size}
	if e.status != http.StatusOK {
		return whole
	}
	if notModified(r, e) {
		return answerPlan{status: http.StatusNotModified}
	}
	lines := r.Header["Range"]
	if len(lines) != 1 || r.Method != http.MethodGet || size < 0 || !ifRange(r, e) {
		return whole
	}
	first, last, ok := parseRange(lines[0], size)
	switch {
	case !ok:
		return whole
	case first >= size:
		return answerPlan{status: http.StatusRequestedRangeNotSatisfiable, contentRange: "bytes */" + itoa(size)}
	}
	return answerPlan{status: http.StatusPartialContent, offset: first, length: last - first + 1,
		contentRange: "bytes " + itoa(first) + "-" + itoa(last) + "/" + itoa(size)}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// notModified evaluates If-None-Match or, without it, If-Modified-Since.
func notModified(r *request, e *entry) bool {
	if lines, ok := r.Header["If-None-Match"]; ok {
		for _, line := range lines {
			for line != "" {
				var tag string
				tag, line = cutList(line)
				if tag == "*" || e.etag != "" && weakMatch(tag, e.etag) {
					return true
				}
			}
		}
		return false
	}
	since := headerTime(r.Header, "If-Modified-Since")
	if since.IsZero() {
		return false
	}
	modified := e.modified
	if modified.IsZero() {
		modified = e.date
	}
	return !modified.After(since)
}

// weakMatch compares entity tags weakly (RFC 9110 section 8.8.3.2).
func weakMatch(a, b string) bool { return strings.TrimPrefix(a, "W/") == strings.TrimPrefix(b, "W/") }

// ifRange reports whether a Range applies: there is no If-Range, or it names this
// representation by a strong validator (RFC 9110 section 13.1.5).
func ifRange(r *request, e *entry) bool {
	lines, ok := r.Header["If-Range"]
	if !ok {
		return true
	}
	if len(lines) != 1 {
		return false
	}
	v := strings.Trim(lines[0], " \t")
	if strings.HasPrefix(v, `"`) || strings.HasPrefix(v, "W/") {
		return v == e.etag && !strings.HasPrefix(v, "W/")
	}
	t, ok := parseDate(v)
	// A date is strong if the representation was left alone for a second at least
	// (section 8.8.2.2).
	return ok && !e.modified.IsZero() && t.Equal(e.modified) && e.date.Sub(e.modified) >= time.Second
}

// parseRange reads a Range of one part, of a body of size bytes. It isn't ok if
// the field is to be ignored: another unit, several parts, broken. first >= size
// means that the range can't be satisfied.
func parseRange(s string, size int64) (first, last int64, ok bool) {
	unit, set, found := strings.Cut(s, "=")
	if !found || !strings.EqualFold(strings.Trim(unit, " \t"), "bytes") {
		return 0, 0, false
	}
	a, b, found := strings.Cut(strings.Trim(set, " \t"), "-")
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
