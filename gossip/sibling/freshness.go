package sibling

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// members returns those of a list field in lower case and without blanks.
// Commas within quoted strings part members too: nobody here looks for those.
func members(lines []string) (list []string) {
	for _, line := range lines {
		for m := range strings.SplitSeq(line, ",") {
			if m = strings.ToLower(strings.TrimSpace(m)); m != "" {
				list = append(list, m)
			}
		}
	}
	return list
}

func directives(h http.Header) []string { return members(h["Cache-Control"]) }

// has reports whether directives name one, with or without an argument.
func has(directives []string, name string) bool {
	for _, d := range directives {
		if d == name || strings.HasPrefix(d, name+"=") {
			return true
		}
	}
	return false
}

// seconds returns the argument of a directive such as max-age, if it is there; a
// bad one is 0 (RFC 9111 section 4.2.1).
func seconds(directives []string, name string) (time.Duration, bool) {
	for _, d := range directives {
		if arg, ok := strings.CutPrefix(d, name+"="); ok {
			n, err := strconv.ParseUint(strings.Trim(arg, `"`), 10, 31)
			if err != nil {
				n = 0
			}
			return time.Duration(n) * time.Second, true
		}
	}
	return 0, false
}

// lifetimeOf returns how old a response is and how old it may grow, if it says that
// (RFC 9111 section 4.2).
func lifetimeOf(h http.Header, cc []string, now time.Time) (age, lifetime time.Duration, limited bool) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		date = now
	}
	age = max(0, now.Sub(date))
	if n, err := strconv.ParseUint(h.Get("Age"), 10, 31); err == nil {
		age = max(age, time.Duration(n)*time.Second)
	}
	for _, name := range []string{"s-maxage", "max-age"} {
		if lifetime, ok := seconds(cc, name); ok {
			return age, lifetime, true
		}
	}
	if h.Get("Expires") == "" {
		return age, 0, false
	}
	if expires, err := http.ParseTime(h.Get("Expires")); err == nil {
		lifetime = expires.Sub(date)
	}
	return age, lifetime, true
}

// isStale reports whether a response with an explicit lifetime has outlived it. One
// without is as fresh as who stored it says.
func isStale(h http.Header, cc []string, now time.Time) bool {
	age, lifetime, limited := lifetimeOf(h, cc, now)
	return limited && age >= lifetime
}
