// Package rules applies an operator's rules, which add to what clients and origins say: how long
// responses are stored, which query parameters are part of the key, what bypasses the cache, what is
// refused or redirected, and which header fields origins and clients get.
//
// A [Set] is plain data. Its rules are tried in order: each setting is decided by the first [Rule]
// that matches and has this setting; each header field, and each failure of an origin, is a setting of
// its own. [Set.Request] decides about a request when it arrives, [Set.Rewritten] changes the path that
// the origin gets, [Set.Response] the origin's response, and [Set.Deliver] what a client gets of it. The
// decision about storing a response is written into its header, as a targeted Cache-Control for peers
// only (RFC 9213), so that siblings that get the response decide alike. All functions are pure and safe
// for concurrent use.
package rules

import (
	"cmp"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/planted"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// What happens to a response with Set-Cookie.
const (
	Refuse = "refuse" // it is not stored; this is the default
	Store  = "store"  // it is stored with the cookie
	Drop   = "drop"   // it is stored without the cookie, which the client does not get either
)

// A Rule has conditions and settings. It matches if all its conditions are met. In patterns *
// matches any characters. A rule with Paths matches an ambiguous path (see [canonical.Ambiguous]) for
// the settings that restrict (Deny, Rate, MaxBody, Bypass, MaxTTL, and SetCookie to refuse), and for no
// others. The tags are the keys of the configuration file.
type Rule struct {
	Name  string // its name in responses and in [Decision]: usually its number
	Where string // its place in the configuration, for the operator

	// Conditions about the request: the scheme, patterns of the URL's host and path, and of names of
	// cookies and header fields, of which the request must have one; nil or "" = no condition. A host
	// stands for all its ports.
	Scheme  string   `name:"scheme" type:"choice" oneof:"http,https"`
	Sites   []string `name:"site" type:"pattern" lower:"yes"`
	Paths   []string `name:"path" type:"path"`
	Cookies []string `name:"cookie" type:"pattern"`
	Headers []string `name:"header" type:"pattern"`
	// Clients are networks of the client, for Deny, Rate and MaxBody only: all clients share what is stored.
	Clients []netip.Prefix `name:"client" type:"network"`

	// Conditions about the response: its status, and patterns of its media type without
	// parameters; nil = no condition. Without Statuses, TTL applies to statuses below 500 that are
	// cacheable by default.
	Statuses []Range  `name:"status" type:"status"`
	Types    []string `name:"type" type:"pattern" lower:"yes"`

	// The settings; nil or "" = the rule does not have this setting.

	Deny     *bool   `name:"deny" type:"boolean"` // answer 403
	Rate     *Rate   `name:"rate" type:"rate"`
	MaxBody  *int64  `name:"max-body" type:"size"` // bytes of a request's body; 0 = any number
	Redirect *Target `name:"redirect" type:"redirect"`
	Rewrite  *Target `name:"rewrite" type:"rewrite"`  // the path that the origin gets
	Failover *bool   `name:"failover" type:"boolean"` // ask another origin of the site
	// RequestHeader changes the request before anything looks at its fields; ResponseHeader the answer
	// when it is sent to a client: neither what is stored nor what siblings get.
	RequestHeader  []Field `name:"request-header" type:"request-field"`
	ResponseHeader []Field `name:"response-header" type:"response-field"`

	Bypass        *bool    `name:"bypass" type:"boolean"`          // send the request to the origin and do not store the response
	IgnoreNoCache *bool    `name:"ignore-no-cache" type:"boolean"` // ignore a client's directives for a newer response than the stored one
	QueryKeep     []string `name:"query-keep" type:"pattern"`
	QueryDrop     []string `name:"query-drop" type:"pattern"`
	QuerySort     *bool    `name:"query-sort" type:"boolean"`
	// Encodings are the content codings that the origin can produce, best first. The origin is
	// asked for the first one that the client accepts.
	Encodings []string `name:"encodings" type:"choice" lower:"yes" oneof:"br,zstd,gzip,deflate,compress"`
	// Compress are the codings, best first, by which the peer compresses an uncompressed response
	// of the origin. Encodings take precedence. Empty = do not compress.
	Compress    []string `name:"compress" type:"coding" lower:"yes"`
	CookiesKeep []string `name:"cookies-keep" type:"pattern"`                        // other cookies are not sent to the origin
	SetCookie   string   `name:"set-cookie" type:"choice" oneof:"refuse,store,drop"` // one of the constants above

	// TTL is the lifetime of a response that states none, counted from its arrival, if the origin got
	// no cookie with the request. MinTTL and MaxTTL bound any lifetime. None of them stores a response
	// that forbids it.
	TTL    *time.Duration `name:"ttl" type:"seconds"`
	MinTTL *time.Duration `name:"min-ttl" type:"seconds"`
	MaxTTL *time.Duration `name:"max-ttl" type:"seconds"`
}

// A Rate is a number of requests from one address in a time: that many at once, and no more of them in
// the long run than that.
type Rate struct {
	Requests int // 0 = any number, an exception from later rules
	Per      time.Duration
}

// String returns the rate as it is written in the configuration.
func (r *Rate) String() string {
	return strconv.Itoa(r.Requests) + "r/" + map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[r.Per]
}

// A Range is a range of status codes, both ends included.
type Range struct{ From, To int }

// A Set is a list of rules.
type Set []Rule

// A Decision is the effect of one rule.
type Decision struct {
	What string `json:"what"` // the key of the setting, with its value
	Rule string `json:"rule"`
}

func anyGlob(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return invalidation.Glob(p, s) })
}

// matchesRequest reports whether the conditions about the request are met. restricts says that the
// rule would only restrict what is done with it: then an ambiguous path meets any condition, since
// the origin may take it for any path, and otherwise none.
func (r *Rule) matchesRequest(q *http.Request, ambiguous, restricts bool) bool {
	return (r.Scheme == "" || r.Scheme == q.URL.Scheme) && (r.Sites == nil || anyHost(r.Sites, q.URL.Host)) &&
		(r.Paths == nil || ambiguous && restricts || !ambiguous && anyGlob(r.Paths, q.URL.Path)) && (r.Cookies == nil || hasCookie(q.Header, r.Cookies)) && (r.Headers == nil || hasField(q.Header, r.Headers))
}

// anyHost reports whether a host, or the host without its port, matches one of the patterns.
func anyHost(patterns []string, host string) bool {
	if anyGlob(patterns, host) {
		return true
	}
	if port := strings.LastIndexByte(host, ':'); port > strings.LastIndexByte(host, ']') {
		host = host[:port]
	}
	return anyGlob(patterns, strings.TrimSuffix(host, "."))
}

func hasField(h http.Header, patterns []string) bool {
	for name := range h {
		if slices.ContainsFunc(patterns, func(p string) bool { return invalidation.Glob(strings.ToLower(p), strings.ToLower(name)) }) {
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

// cookies yields the cookies of a request, as NAME=VALUE.
func cookies(h http.Header) iter.Seq[string] {
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

// An Effect is what the rules want of a request beside changes of it. The zero value is nothing.
type Effect struct {
	Bypass   bool  // of the cache
	Deny     *Rule // refuse it; nil = don't
	Rate     *Rule // the rule whose Rate applies; nil = none
	MaxBody  int64 // bytes; 0 = any number
	Redirect *Rule // answer with its [Rule.Location]; nil = don't
	Deliver  bool  // call [Set.Deliver] with the answer
}

// ByClient reports whether a rule has a condition about the client's address.
func (s Set) ByClient() bool {
	return slices.ContainsFunc(s, func(r Rule) bool { return r.Clients != nil })
}

// Request returns r as changed by the rules, which is r itself or a copy, and their further effects. client is
// the client's address; the zero address is in no network. A
// sibling's lookup request was changed at that sibling and is never passed on, so that only its key is
// normalised; it may be denied, too, since any client can send one. decided, if not nil, is called with
// each decision.
func (s Set) Request(r *http.Request, client netip.Addr, lookup bool, decided func(Decision)) (out *http.Request, e Effect) {
	if len(s) == 0 {
		return r, e
	}
	var params, sort, codings, compress, kept, noCache, bypassing, denying, limiting, sizing, redirecting, rewriting *Rule
	var changing []*Rule
	ambiguous := canonical.Ambiguous(r.URL)
	for i := range s {
		rule := &s[i]
		if !lookup && rule.ResponseHeader != nil && rule.matchesRequest(r, ambiguous, false) {
			e.Deliver = true
		}
		bypasses, denies := isTrue(rule.Bypass), isTrue(rule.Deny)
		limits, sizes := rule.Rate != nil && rule.Rate.Requests > 0, rule.MaxBody != nil && *rule.MaxBody > 0
		switch {
		case rule.Clients != nil && !slices.ContainsFunc(rule.Clients, func(p netip.Prefix) bool { return p.Contains(client) }):
			continue
		case rule.ofResponses() || !rule.matchesRequest(r, ambiguous, bypasses || denies || limits || sizes):
			continue
		case ambiguous && rule.Paths != nil: // its other settings are for the path that is written there
			first(&bypassing, rule, bypasses)
			first(&denying, rule, denies)
			first(&limiting, rule, limits)
			first(&sizing, rule, sizes)
			continue
		}
		first(&params, rule, rule.QueryKeep != nil || rule.QueryDrop != nil)
		first(&sort, rule, rule.QuerySort != nil)
		first(&codings, rule, rule.Encodings != nil)
		first(&compress, rule, rule.Compress != nil)
		first(&kept, rule, rule.CookiesKeep != nil)
		first(&noCache, rule, rule.IgnoreNoCache != nil)
		first(&bypassing, rule, rule.Bypass != nil)
		first(&denying, rule, rule.Deny != nil)
		first(&limiting, rule, rule.Rate != nil)
		first(&sizing, rule, rule.MaxBody != nil)
		first(&redirecting, rule, rule.Redirect != nil)
		first(&rewriting, rule, rule.Rewrite != nil)
		if rule.RequestHeader != nil {
			changing = append(changing, rule)
		}
	}
	tell := func(rule *Rule, what string) {
		if decided != nil {
			decided(Decision{what, rule.Label()})
		}
	}
	if denying != nil && *denying.Deny {
		tell(denying, "deny")
		e.Deny = denying
		return r, e
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
	if what, coding, rule := choose(codings, compress, r.Header, lookup); rule != nil {
		if lines := r.Header["Accept-Encoding"]; len(lines) != 1 || lines[0] != coding {
			out = clone(out, r)
			out.Header["Accept-Encoding"] = []string{coding}
		}
		tell(rule, what+" "+coding)
	}
	if lookup {
		return out, e
	}
	if limiting != nil && limiting.Rate.Requests > 0 {
		tell(limiting, "rate "+limiting.Rate.String())
		e.Rate = limiting
	}
	if sizing != nil && *sizing.MaxBody > 0 {
		tell(sizing, "max-body "+strconv.FormatInt(*sizing.MaxBody, 10))
		e.MaxBody = *sizing.MaxBody
	}
	if redirecting != nil && redirecting.Redirect.Text != "" {
		tell(redirecting, "redirect "+redirecting.Redirect.Text)
		e.Redirect = redirecting
	}
	if rewriting != nil && rewriting.Rewrite.Text != "" {
		tell(rewriting, "rewrite "+rewriting.Rewrite.Text) // by Rewritten
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
	if noCache != nil && *noCache.IgnoreNoCache && (r.Header["Cache-Control"] != nil || r.Header["Pragma"] != nil) {
		out = clone(out, r)
		ignoreNoCache(out.Header)
		tell(noCache, "ignore-no-cache")
	}
	if changing != nil {
		out = clone(out, r)
		change(out.Header, changing, func(r *Rule) []Field { return r.RequestHeader }, func(rule *Rule, f Field) { tell(rule, "request-header "+f.String()) })
	}
	if bypassing != nil && *bypassing.Bypass {
		tell(bypassing, "bypass")
		e.Bypass = true
	}
	return out, e
}

func isTrue(b *bool) bool { return b != nil && *b }

// ofResponses reports whether the rule has conditions about responses.
func (r *Rule) ofResponses() bool { return r.Statuses != nil || r.Types != nil }

// choose returns the coding that the response should have, and the rule that decides this, with the
// name of its setting; nil = the client's Accept-Encoding stays. Nothing is compressed for a client
// that wants no transformation, or a range: parts that were compressed separately would not fit
// together. A lookup request was treated like this at the sibling that sent it.
func choose(encodings, compress *Rule, h http.Header, lookup bool) (what, coding string, by *Rule) {
	if compress != nil && len(compress.Compress) == 0 {
		compress = nil
	}
	coding = "identity"
	if encodings != nil {
		what, coding, by = "encodings", best(encodings.Encodings, h["Accept-Encoding"]), encodings
	}
	if compress != nil && coding == "identity" {
		what, by = "compress", compress
		if lookup || h["Range"] == nil && !rfc9111.NoTransform(h) {
			coding = best(compress.Compress, h["Accept-Encoding"])
		}
	}
	return what, coding, by
}

// Coding returns the coding by which an uncompressed response to r must be compressed. "identity"
// means not for this client, but for others; "" means for nobody.
func (s Set) Coding(r *http.Request) string {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	for i := range s {
		if rule := &s[i]; rule.Compress != nil && rule.matchesRequest(r, canonical.Ambiguous(r.URL), false) {
			if len(rule.Compress) == 0 {
				return ""
			}
			_, coding, _ := choose(nil, rule, r.Header, false)
			return coding
		}
	}
	return ""
}

// best returns the first coding that a client accepts: "identity" if it accepts none, or does not say.
func best(codings, accept []string) string {
	takes := func(coding string) bool {
		any := false
		for item := range rfc9111.Members(accept) {
			name, weight, _ := strings.Cut(strings.ToLower(item), ";")
			name = strings.TrimPrefix(strings.TrimSpace(name), "x-")
			_, q, weighed := strings.Cut(strings.ReplaceAll(weight, " ", ""), "q=")
			yes := !weighed || strings.Trim(q, "0.") != ""
			switch name {
			case coding:
				if planted.Fault == "star-overrides" {
					any = yes
					continue
				}
				return yes
			case "*":
				any = yes
			}
		}
		return any
	}
	if i := slices.IndexFunc(codings, takes); i >= 0 {
		return codings[i]
	}
	return "identity"
}

// first sets *at to the first rule that has a setting.
func first(at **Rule, r *Rule, has bool) {
	if *at == nil && has {
		*at = r
	}
}

// clone returns a copy of r with its own header, or out if that is such a copy already.
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

// query removes and sorts parameters of a raw query. The remaining ones are not re-encoded.
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

// ignoreNoCache removes the directives by which a client demands a fresher response.
func ignoreNoCache(h http.Header) {
	var left []string
	for item := range rfc9111.Members(h["Cache-Control"]) {
		if name, _, _ := strings.Cut(strings.ToLower(item), "="); name != "no-cache" && name != "max-age" && name != "min-fresh" {
			left = append(left, item)
		}
	}
	delete(h, "Cache-Control")
	delete(h, "Pragma")
	if left != nil {
		h["Cache-Control"] = []string{strings.Join(left, ", ")}
	}
}

// Label returns the rule's name and place, for the operator.
func (r *Rule) Label() string {
	if r.Where == "" {
		return r.Name
	}
	return r.Name + " (" + r.Where + ")"
}
