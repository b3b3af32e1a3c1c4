package cache

import (
	"net/http"
	"strings"
	"time"
)

// unset marks a directive with a delta-seconds argument that is absent.
const unset = time.Duration(-1)

// maxDelta is what a larger or overflowing delta-seconds value counts as
// (RFC 9111 section 1.2.2).
const maxDelta = (1 << 31) * time.Second

// directives are the cache directives of a request or a response (RFC 9111
// section 5.2, RFC 5861, RFC 8246).
type directives struct {
	noStore, noCache, private, public               bool
	mustRevalidate, proxyRevalidate, mustUnderstand bool
	onlyIfCached, anyStale                          bool
	noCacheFields                                   []string // of a qualified no-cache; then noCache is false

	maxAge, sMaxAge, minFresh, maxStale time.Duration // unset if absent
	staleWhileRevalidate, staleIfError  time.Duration // unset if absent
}

func noDirectives() directives {
	return directives{maxAge: unset, sMaxAge: unset, minFresh: unset, maxStale: unset,
		staleWhileRevalidate: unset, staleIfError: unset}
}

// requestDirectives reads a request's Cache-Control, or its Pragma if there is
// none (RFC 9111 section 5.4).
func requestDirectives(h http.Header) directives {
	lines, ok := h["Cache-Control"]
	if !ok {
		d := noDirectives()
		for _, line := range h["Pragma"] {
			d.noCache = d.noCache || hasToken(line, "no-cache")
		}
		return d
	}
	return parseDirectives(lines)
}

// parseDirectives reads the lines of a Cache-Control field. Names are
// case-insensitive, arguments may be tokens or quoted strings. The first of
// several equal directives counts. A delta-seconds argument that is none counts
// as 0: a response with invalid freshness is stale (section 4.2.1).
func parseDirectives(lines []string) directives {
	d := noDirectives()
	for _, line := range lines {
		for line != "" {
			var item string
			item, line = cutList(line)
			name, arg, hasArg := strings.Cut(item, "=")
			if arg, ok := unquote(arg); ok || !hasArg {
				d.set(strings.ToLower(name), arg, hasArg)
			}
		}
	}
	return d
}

func (d *directives) set(name, arg string, hasArg bool) {
	switch name {
	case "no-store":
		d.noStore = true
	case "no-cache":
		if hasArg && arg != "" && !d.noCache {
			d.noCacheFields = appendFields(d.noCacheFields, arg)
		} else {
			d.noCache, d.noCacheFields = true, nil
		}
	case "private":
		d.private = true
	case "public":
		d.public = true
	case "must-revalidate":
		d.mustRevalidate = true
	case "proxy-revalidate":
		d.proxyRevalidate = true
	case "must-understand":
		d.mustUnderstand = true
	case "only-if-cached":
		d.onlyIfCached = true
	case "max-age":
		setDelta(&d.maxAge, arg)
	case "s-maxage":
		setDelta(&d.sMaxAge, arg)
	case "min-fresh":
		setDelta(&d.minFresh, arg)
	case "max-stale":
		if d.anyStale = d.anyStale || !hasArg; hasArg {
			setDelta(&d.maxStale, arg)
		}
	case "stale-while-revalidate":
		setDelta(&d.staleWhileRevalidate, arg)
	case "stale-if-error":
		setDelta(&d.staleIfError, arg)
	}
}

func setDelta(dst *time.Duration, arg string) {
	if *dst == unset {
		*dst, _ = parseDelta(arg)
	}
}

// parseDelta reads delta-seconds; ok is false, and the result 0, for anything
// else.
func parseDelta(s string) (d time.Duration, ok bool) {
	if s == "" {
		return 0, false
	}
	const most = int64(maxDelta / time.Second)
	seconds := int64(0)
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		seconds = min(seconds*10+int64(c-'0'), most)
	}
	return time.Duration(seconds) * time.Second, true
}

// cutList splits the first element off a comma-separated list, in which commas
// may stand in quoted strings. The element is trimmed; it may be empty.
func cutList(s string) (item, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return strings.Trim(s[:i], " \t"), s[i+1:]
		}
	}
	return strings.Trim(s, " \t"), ""
}

// unquote returns the value of a token or a quoted string; ok is false if a
// quoted string isn't closed.
func unquote(s string) (v string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i == len(s)-1
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// appendFields appends the canonical field names of a comma-separated list.
func appendFields(dst []string, list string) []string {
	for list != "" {
		var name string
		if name, list = cutList(list); name != "" {
			dst = append(dst, http.CanonicalHeaderKey(name))
		}
	}
	return dst
}

// hasToken reports whether a comma-separated list has a token, in any case.
func hasToken(list, token string) bool {
	for list != "" {
		var item string
		if item, list = cutList(list); strings.EqualFold(item, token) {
			return true
		}
	}
	return false
}
