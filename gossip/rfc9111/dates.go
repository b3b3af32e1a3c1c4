package rfc9111

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// dateLayouts are the forms of an HTTP date (RFC 9110 section 5.6.7).
var dateLayouts = []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// ParseDate reads an HTTP date (RFC 9110 section 5.6.7). It is stricter than
// [http.ParseTime], which accepts hours of one digit and runs of spaces: an invalid date
// must make a response stale, and never fresh by a guess. Case and the day of the week are
// ignored.
func ParseDate(s string) (time.Time, bool) {
	if t, ok := parseFixdate(s); ok {
		return t, true
	}
	return parseAnyDate(s)
}

const monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"

// parseFixdate reads a date in the form that nearly all senders use, [http.TimeFormat]. It is
// faster than time.Parse: each response has one or two dates. If it is not ok, the date
// may still be valid.
func parseFixdate(s string) (t time.Time, ok bool) {
	if len(s) != len(http.TimeFormat) || s[3:5] != ", " || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' ||
		s[19] != ':' || s[22] != ':' || s[25:] != " GMT" {
		return t, false
	}
	ok = strings.Contains("Mon Tue Wed Thu Fri Sat Sun", s[:3]) && s[0] != ' ' && s[1] != ' ' && s[2] != ' '
	number := func(from, to int) (n int) {
		for _, digit := range []byte(s[from:to]) {
			ok = ok && '0' <= digit && digit <= '9'
			n = 10*n + int(digit-'0')
		}
		return n
	}
	day, year, hour, minute, second := number(5, 7), number(12, 16), number(17, 19), number(20, 22), number(23, 25)
	month := strings.Index(monthNames, s[8:11])
	if !ok || month < 0 || month%3 != 0 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	t = time.Date(year, time.Month(1+month/3), day, hour, minute, second, 0, time.UTC)
	return t, day <= 28 || t.Day() == day
}

func parseAnyDate(s string) (time.Time, bool) {
	upper := strings.ToUpper(s)                           // time.Parse ignores case in names, and not in "GMT"
	if len(s) < len(time.ANSIC) || len(upper) != len(s) { // too short for all layouts, or not ASCII
		return time.Time{}, false
	}
	var room [40]byte
	_, rest, _ := strings.Cut(upper, " ")
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, upper)
		if err != nil {
			continue
		}
		_, again, _ := bytes.Cut(t.UTC().AppendFormat(room[:0], layout), []byte(" "))
		if strings.EqualFold(string(again), rest) {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// headerDate parses a date field; one of several lines is invalid. The zero Time = absent or invalid.
func headerDate(h http.Header, name string) time.Time {
	if lines := h[name]; len(lines) == 1 {
		t, _ := ParseDate(lines[0])
		return t
	}
	return time.Time{}
}
