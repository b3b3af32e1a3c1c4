package rfc9111

import (
	"net/http"
	"strings"
	"time"
)

// Unset is the value of an absent directive in [Directives].
const Unset = time.Duration(-1)

// MaxDelta stands for every larger number of seconds (RFC 9111 section 1.2.2).
const MaxDelta = (1 << 31) * time.Second

// anyStale is the value of a max-stale without an argument.
const anyStale = time.Duration(1<<63 - 1)

// Directives are the cache directives of a request or a response (RFC 9111 section
// 5.2, RFC 5861).
type Directives struct {
	NoStore, NoCache, Private, Public               bool
	MustRevalidate, ProxyRevalidate, MustUnderstand bool
	OnlyIfCached                                    bool
	NoCacheFields                                   []string // canonical, of a qualified no-cache; then NoCache is false
	Blameless                                       bool     // the request is, as [Blameless] says; RequestDirectives does not set it

	// In whole seconds, from 0 to MaxDelta; Unset if absent. A MaxStale without an argument
	// is the longest Duration.
	MaxAge, SMaxAge, MinFresh, MaxStale time.Duration
	StaleWhileRevalidate, StaleIfError  time.Duration
}

func noDirectives() Directives {
	return Directives{MaxAge: Unset, SMaxAge: Unset, MinFresh: Unset, MaxStale: Unset,
		StaleWhileRevalidate: Unset, StaleIfError: Unset}
}

// RequestDirectives reads a request's Cache-Control or, without one, its Pragma
// (RFC 9111 sections 5.2.1 and 5.4). A nil header has no directives.
func RequestDirectives(h http.Header) Directives {
	lines, ok := h["Cache-Control"]
	if !ok {
		d := noDirectives()
		d.NoCache = hasToken(h["Pragma"], "no-cache")
		return d
	}
	return parseDirectives(lines)
}

// NoTransform reports whether the header of a request or a response forbids caches to
// change the content (RFC 9111 sections 5.2.1.6 and 5.2.2.6).
func NoTransform(h http.Header) bool { return hasToken(h["Cache-Control"], "no-transform") }

// parseDirectives reads the lines of a Cache-Control field. Names are
// case-insensitive, arguments may be tokens or quoted strings. The first of
// several equal directives counts. An invalid number of seconds counts
// as 0: a response with invalid freshness is stale (section 4.2.1). What is no directive, such as
// "private; max-age=60" or "#private", restricts by the words in it: whoever wrote it meant them.
func parseDirectives(lines []string) Directives {
	d := noDirectives()
	for item := range Members(lines) {
		name, arg, hasArg := strings.Cut(item, "=")
		value, ok := unquote(arg)
		if ok {
			d.set(strings.ToLower(name), value, hasArg)
		}
		if !IsToken(name) || strings.ContainsAny(name, "!#$%&'*+.^`|~") || hasArg && !IsToken(arg) &&
			!(ok && strings.HasPrefix(arg, `"`)) {
			item = strings.ToLower(item)
			for _, word := range []string{"no-store", "no-cache", "private"} {
				if strings.Contains(item, word) {
					d.set(word, "", false)
				}
			}
		}
	}
	return d
}

func (d *Directives) set(name, arg string, hasArg bool) {
	switch name {
	case "no-store":
		d.NoStore = true
	case "no-cache":
		if hasArg && arg != "" && !d.NoCache {
			d.NoCacheFields = appendFields(d.NoCacheFields, arg)
		} else {
			d.NoCache, d.NoCacheFields = true, nil
		}
	case "private":
		d.Private = true
	case "public":
		d.Public = true
	case "must-revalidate":
		d.MustRevalidate = true
	case "proxy-revalidate":
		d.ProxyRevalidate = true
	case "must-understand":
		d.MustUnderstand = true
	case "only-if-cached":
		d.OnlyIfCached = true
	case "max-stale":
		if !hasArg {
			d.MaxStale = anyStale
			return
		}
	}
	if delta := d.delta(name); delta != nil && *delta == Unset {
		*delta, _ = parseDelta(arg)
	}
}

// delta returns the field of a directive whose argument is in seconds; nil for other directives.
func (d *Directives) delta(name string) *time.Duration {
	switch name {
	case "max-age":
		return &d.MaxAge
	case "s-maxage":
		return &d.SMaxAge
	case "min-fresh":
		return &d.MinFresh
	case "max-stale":
		return &d.MaxStale
	case "stale-while-revalidate":
		return &d.StaleWhileRevalidate
	case "stale-if-error":
		return &d.StaleIfError
	}
	return nil
}

// parseDelta reads a number of seconds. For anything else, ok is false and d is 0.
func parseDelta(s string) (d time.Duration, ok bool) {
	if s == "" {
		return 0, false
	}
	const most = int64(MaxDelta / time.Second)
	seconds := int64(0)
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		seconds = min(seconds*10+int64(c-'0'), most)
	}
	return time.Duration(seconds) * time.Second, true
}
