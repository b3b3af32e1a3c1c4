package cache

import (
	"net/http"
	"strings"
	"time"
)

// dateLayouts are the forms of an HTTP date (RFC 9110 section 5.6.7).
var dateLayouts = []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// parseDate reads an HTTP date. It is stricter than net/http, which takes hours
// of one digit and runs of spaces: a date that isn't one makes a response stale,
// and must not make it fresh by a guess. Case and the day of the week are not
// looked at.
func parseDate(s string) (time.Time, bool) {
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, canonicalZone(s))
		if err == nil && strings.EqualFold(pastDay(t.UTC().Format(layout)), pastDay(s)) {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// pastDay returns what follows the day of the week.
func pastDay(s string) string {
	_, rest, _ := strings.Cut(s, " ")
	return rest
}

// canonicalZone writes the zone as the layouts have it; time.Parse compares
// names of days and months, but not literals, in any case.
func canonicalZone(s string) string {
	if n := len(s) - len("GMT"); n >= 0 && strings.EqualFold(s[n:], "GMT") {
		return s[:n] + "GMT"
	}
	return s
}

// headerTime parses the one line of a date field; several lines are invalid.
func headerTime(h http.Header, name string) time.Time {
	if lines := h[name]; len(lines) == 1 {
		t, _ := parseDate(lines[0])
		return t
	}
	return time.Time{}
}
