// Package rules applies an operator's caching rules, which go beyond what origins say: how long
// responses are stored, under which of a URL's parameters, and what bypasses the cache.
//
// A [Set] is data, read from the top: each setting is decided by the first [Rule] that
// matches and has it. [Set.Request] changes a request on its way in, [Set.Response] the
// origin's answer. The decision about a response is written into its header, as a
// targeted Cache-Control (RFC 9213) for these caches alone, so that siblings that get the
// response decide alike. All functions are pure and safe for concurrent use.
package rules

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// What is done with a Set-Cookie.
const (
	Refuse = "refuse" // the response is not kept, which is the default
	Store  = "store"  // it is kept, cookie and all
	Drop   = "drop"   // it is kept without the cookie, which the client does not get either
)

// A Rule has conditions and settings. It matches if all its conditions are met; in patterns *
// stands for any characters. The tags are the keys of a configuration file.
type Rule struct {
	Name  string // as answers and [Decision] have it: its number, mostly
	Where string // for the operator: where it was written

	// Patterns of the URL's host and path, and of names, one of which the request has; none = any.
	Sites   []string `name:"site" type:"pattern" lower:"yes"`
	Paths   []string `name:"path" type:"path"`
	Cookies []string `name:"cookie" type:"pattern"`
	Headers []string `name:"header" type:"pattern"`

	Statuses []Range  `name:"status" type:"status"`            // of the response; none = any below 500 that may be kept without being told
	Types    []string `name:"type" type:"pattern" lower:"yes"` // patterns of its media type, without parameters; none = any

	Bypass        *bool    `name:"bypass" type:"boolean"`          // the request goes to the origin, and its answer is not kept
	IgnoreNoCache *bool    `name:"ignore-no-cache" type:"boolean"` // a client's wish for an answer that is new, or newer than the stored one
	QueryKeep     []string `name:"query-keep" type:"pattern"`
	QueryDrop     []string `name:"query-drop" type:"pattern"`
	QuerySort     *bool    `name:"query-sort" type:"boolean"`
	Encodings     []string `name:"encodings" type:"choice" lower:"yes" oneof:"br,zstd,gzip,deflate,compress"` // the content codings that the origin has, best first; it is asked for the first that the client takes
	Compress      []string `name:"compress" type:"coding" lower:"yes"`                                        // those into which what the origin sends without is put, best first and behind Encodings; empty = none, nil = nothing is said
	CookiesKeep   []string `name:"cookies-keep" type:"pattern"`                                               // the others do not reach the origin; nil = all are kept
	SetCookie     string   `name:"set-cookie" type:"choice" oneof:"refuse,store,drop"`                        // one of the constants; "" = nothing is said

	// TTL is the lifetime of a response that states none, counted from its arrival; MinTTL and
	// MaxTTL bound that of any. They do not make what forbids it stored. nil = nothing is said.
	TTL    *time.Duration `name:"ttl" type:"seconds"`
	MinTTL *time.Duration `name:"min-ttl" type:"seconds"`
	MaxTTL *time.Duration `name:"max-ttl" type:"seconds"`
	// Anonymous says that TTL is not for the answers to requests with cookies.
	Anonymous bool
}

// A Range is a range of status codes, both ends included.
type Range struct{ From, To int }

// A Set is a list of rules.
type Set []Rule

// A Decision is what one rule said.
type Decision struct {
	What string `json:"what"` // the key that was decided, with its value
	Rule string `json:"rule"`
}

// Glob reports whether s is what pattern stands for. Both loops end: s only gets shorter.
func Glob(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, first)
	for ok {
		var piece string
		if piece, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(s, piece)
		}
		_, s, ok = strings.Cut(s, piece)
	}
	return false
}

func anyGlob(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Glob(p, s) })
}

// wants reports whether a rule is for a request.
func (r *Rule) wants(q *http.Request) bool {
	return (r.Sites == nil || anyGlob(r.Sites, q.URL.Host)) && (r.Paths == nil || anyGlob(r.Paths, q.URL.Path)) &&
		(r.Cookies == nil || hasCookie(q.Header, r.Cookies)) && (r.Headers == nil || hasField(q.Header, r.Headers))
}

func hasField(h http.Header, patterns []string) bool {
	for name := range h {
		if slices.ContainsFunc(patterns, func(p string) bool { return Glob(strings.ToLower(p), strings.ToLower(name)) }) {
			return true
		}
	}
	return false
}

func hasCookie(h http.Header, patterns []string) bool {
	for pair := range cookies(h) {
		if name, _, _ := strings.Cut(pair, "="); anyGlob(patterns, name) {
			return true
		}
	}
	return false
}

// cookies yields the pairs of a request.
func cookies(h http.Header) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range h["Cookie"] {
			for pair := range strings.SplitSeq(line, ";") {
				if pair = strings.TrimSpace(pair); pair != "" && !yield(pair) {
					return
				}
			}
		}
	}
}

// Request returns r as the rules want it to be answered: unchanged, or a changed copy.
// bypass means past the cache. A sibling's request, question, was changed where it came from
// and is never passed on: it only gets the same key. decided, if not nil, is called with each
// decision.
func (s Set) Request(r *http.Request, question bool, decided func(Decision)) (out *http.Request, bypass bool) {
	if len(s) == 0 {
		return r, false
	}
	var params, sort, codings, compress, kept, fresh, past *Rule
	for i := range s {
		rule := &s[i]
		if rule.Statuses != nil || rule.Types != nil || !rule.wants(r) {
			continue
		}
		first(&params, rule, rule.QueryKeep != nil || rule.QueryDrop != nil)
		first(&sort, rule, rule.QuerySort != nil)
		first(&codings, rule, rule.Encodings != nil)
		first(&compress, rule, rule.Compress != nil)
		first(&kept, rule, rule.CookiesKeep != nil)
		first(&fresh, rule, rule.IgnoreNoCache != nil)
		first(&past, rule, rule.Bypass != nil)
	}
	tell := func(rule *Rule, what string) {
		if decided != nil {
			decided(Decision{what, rule.Label()})
		}
	}
	out = r
	if params != nil || sort != nil {
		u := *r.URL
		u.RawQuery = query(u.RawQuery, params, sort)
		u.ForceQuery = u.ForceQuery && u.RawQuery != ""
		if u.RawQuery != r.URL.RawQuery {
			out = clone(out, r)
			out.URL = &u
			for _, rule := range slices.Compact([]*Rule{params, sort}) {
				if rule != nil {
					tell(rule, "query "+cmp.Or(u.RawQuery, "empty"))
				}
			}
		}
	}
	if what, coding, rule := choose(codings, compress, r.Header, question); rule != nil {
		if lines := r.Header["Accept-Encoding"]; len(lines) != 1 || lines[0] != coding {
			out = clone(out, r)
			out.Header["Accept-Encoding"] = []string{coding}
		}
		tell(rule, what+" "+coding)
	}
	if question {
		return out, false
	}
	if kept != nil && r.Header["Cookie"] != nil {
		out = clone(out, r)
		var left []string
		for pair := range cookies(r.Header) {
			if name, _, _ := strings.Cut(pair, "="); anyGlob(kept.CookiesKeep, name) {
				left = append(left, pair)
			}
		}
		delete(out.Header, "Cookie")
		if left != nil {
			out.Header["Cookie"] = []string{strings.Join(left, "; ")}
		}
		tell(kept, "cookies-keep "+cmp.Or(strings.Join(kept.CookiesKeep, " "), "none"))
	}
	if fresh != nil && *fresh.IgnoreNoCache && (r.Header["Cache-Control"] != nil || r.Header["Pragma"] != nil) {
		out = clone(out, r)
		ignoreNoCache(out.Header)
		tell(fresh, "ignore-no-cache")
	}
	if past != nil && *past.Bypass {
		tell(past, "bypass")
		return out, true
	}
	return out, false
}

// choose returns the coding that the origin is asked for, and the rule that says so; nil =
// what the client accepts stands. For a client that wants nothing changed, or a part, nothing is
// compressed: parts of a compressed response fit together only by chance. A sibling's
// request was changed so already.
func choose(has, compress *Rule, h http.Header, question bool) (what, coding string, by *Rule) {
	if compress != nil && len(compress.Compress) == 0 {
		compress = nil
	}
	coding = "identity"
	if has != nil {
		what, coding, by = "encodings", best(has.Encodings, h["Accept-Encoding"]), has
	}
	if compress != nil && coding == "identity" {
		what, by = "compress", compress
		if question || h["Range"] == nil && !rfc9111.NoTransform(h) {
			coding = best(compress.Compress, h["Accept-Encoding"])
		}
	}
	return what, coding, by
}

// Coding returns the coding in which the client of a request is to get what the origin
// sends without one, "identity" = in none; "" = nothing is to be compressed.
func (s Set) Coding(r *http.Request) string {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	for i := range s {
		if rule := &s[i]; rule.Compress != nil && rule.wants(r) {
			if len(rule.Compress) == 0 {
				return ""
			}
			_, coding, _ := choose(nil, rule, r.Header, false)
			return coding
		}
	}
	return ""
}

// best returns the first coding that a client accepts; a client that does not say gets none.
func best(codings, accept []string) string {
	takes := func(coding string) bool {
		any := false
		for _, line := range accept {
			for item := range strings.SplitSeq(strings.ToLower(line), ",") {
				name, weight, _ := strings.Cut(item, ";")
				name = strings.TrimPrefix(strings.TrimSpace(name), "x-")
				_, q, weighed := strings.Cut(strings.ReplaceAll(weight, " ", ""), "q=")
				yes := !weighed || strings.Trim(q, "0.") != ""
				switch name {
				case coding:
					return yes
				case "*":
					any = yes
				}
			}
		}
		return any
	}
	if i := slices.IndexFunc(codings, takes); i >= 0 {
		return codings[i]
	}
	return "identity"
}

// first notes the first rule that says something.
func first(at **Rule, r *Rule, says bool) {
	if *at == nil && says {
		*at = r
	}
}

// clone returns a copy of r with a header of its own, unless out is one already.
func clone(out, r *http.Request) *http.Request {
	if out != r {
		return out
	}
	c := *r
	if c.Header = r.Header.Clone(); c.Header == nil {
		c.Header = http.Header{}
	}
	return &c
}

// query rewrites a raw query; what stays stays byte for byte.
func query(raw string, params, sort *Rule) string {
	var left []string
	for param := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(param, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if param != "" && (params == nil || (params.QueryKeep == nil || anyGlob(params.QueryKeep, name)) && !anyGlob(params.QueryDrop, name)) {
			left = append(left, param)
		}
	}
	if sort != nil && *sort.QuerySort {
		slices.SortStableFunc(left, func(a, b string) int {
			a, _, _ = strings.Cut(a, "=")
			b, _, _ = strings.Cut(b, "=")
			return strings.Compare(a, b)
		})
	}
	return strings.Join(left, "&")
}

// ignoreNoCache removes what a client asks of the freshness of its answer.
func ignoreNoCache(h http.Header) {
	var left []string
	for _, line := range h["Cache-Control"] {
		for item := range strings.SplitSeq(line, ",") {
			item = strings.TrimSpace(item)
			name, _, _ := strings.Cut(strings.ToLower(item), "=")
			if name != "" && name != "no-cache" && name != "max-age" && name != "min-fresh" {
				left = append(left, item)
			}
		}
	}
	delete(h, "Cache-Control")
	delete(h, "Pragma")
	if left != nil {
		h["Cache-Control"] = []string{strings.Join(left, ", ")}
	}
}

// Label names a rule for the operator.
func (r *Rule) Label() string {
	if r.Where == "" {
		return r.Name
	}
	return r.Name + " (" + r.Where + ")"
}
