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

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// An Effect is what the rules want of a request beside changes of it. The zero value is nothing.
type Effect struct {
	Bypass   bool  // of the cache
	Deny     *Rule // refuse it; nil = don't
	Rate     *Rule // the rule whose Rate applies; nil = none
	MaxBody  int64 // bytes; 0 = any number
	Redirect *Rule // answer with its [Rule.Location]; nil = don't
	Deliver  bool  // call [Set.Deliver] with the answer
}

// Request returns r as changed by the rules, which is r itself or a copy, and their further effects. client is
// the client's address; the zero address is unknown: rules for clients restrict it. A
// sibling's lookup request was changed at that sibling and is never passed on, so that only its key is
// normalised; it may be denied, too, since any client can send one. decided, if not nil, is called with
// each decision.
func (s Set) Request(r *http.Request, client netip.Addr, lookup bool, decided func(Decision)) (out *http.Request, e Effect) {
	if !lookup && r.Header[rfc9111.KeyField] != nil { // a client has no say in it
		r = clone(r, r)
		delete(r.Header, rfc9111.KeyField)
	}
	if len(s) == 0 {
		return r, e
	}
	var params, sort, codings, compress, kept, noCache, bypassing, denying, limiting, sizing, redirecting, rewriting *Rule
	var changing []*Rule
	f := facts{q: r, client: client, ambiguous: canonical.Ambiguous(r.URL)}
	for i := range s {
		rule := &s[i]
		t := rule.match(f)
		e.Deliver = e.Deliver || t != no && !lookup && (rule.ResponseHeader != nil || rule.ErrorPage != nil)
		if t == no || rule.OfResponses() {
			continue
		}
		first := func(at **Rule, has, restricts bool) {
			if *at == nil && has && (t == yes || restricts) {
				*at = rule
			}
		}
		first(&params, rule.QueryKeep != nil || rule.QueryDrop != nil, false)
		first(&sort, rule.QuerySort != nil, false)
		first(&codings, rule.Encodings != nil, false)
		first(&compress, rule.Compress != nil, false)
		first(&kept, rule.CookiesKeep != nil, false)
		first(&noCache, rule.IgnoreNoCache != nil, false)
		first(&bypassing, rule.Bypass != nil, isTrue(rule.Bypass))
		first(&denying, rule.Deny != nil, isTrue(rule.Deny))
		first(&limiting, rule.Rate != nil, rule.Rate != nil && rule.Rate.Requests > 0)
		first(&sizing, rule.MaxBody != nil, rule.MaxBody != nil && *rule.MaxBody > 0)
		first(&redirecting, rule.Redirect != nil, false)
		first(&rewriting, rule.Rewrite != nil, false)
		if rule.RequestHeader != nil && t == yes {
			changing = append(changing, rule)
		}
	}
	tell := func(rule *Rule, what string) {
		if decided != nil {
			if rule.byClient() && !client.IsValid() {
				what += ", for some clients"
			}
			decided(Decision{what, rule.Label()})
		}
	}
	if denying != nil && *denying.Deny {
		tell(denying, "deny")
		e.Deny = denying
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
	if lookup || e.Deny != nil && (client.IsValid() || !denying.byClient()) {
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
	if key := s.key(f, func(r *Rule) { tell(r, "key "+strings.Join(r.Key, " ")) }); key != nil {
		out = clone(out, r)
		out.Header[rfc9111.KeyField] = []string{keyed(f, key)}
		e.Deliver = true
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
		change(f, out.Header, changing, func(r *Rule) []Field { return r.RequestHeader }, func(rule *Rule, f Field) { tell(rule, "request-header "+f.String()) })
	}
	if bypassing != nil && *bypassing.Bypass {
		tell(bypassing, "bypass")
		e.Bypass = true
	}
	return out, e
}

func isTrue(b *bool) bool { return b != nil && *b }

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
		if param != "" && (params == nil || (params.QueryKeep == nil || anyGlob(params.QueryKeep, name)) &&
			!anyGlob(params.QueryDrop, name)) {
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
		if name, _, _ := strings.Cut(strings.ToLower(item), "="); name != "no-cache" && name != "max-age" &&
			name != "min-fresh" {
			left = append(left, item)
		}
	}
	delete(h, "Cache-Control")
	delete(h, "Pragma")
	if left != nil {
		h["Cache-Control"] = []string{strings.Join(left, ", ")}
	}
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
	if rule := s.decide(facts{q: r}, func(r *Rule) (has, restricts bool) { return r.Compress != nil, false }); rule != nil && len(rule.Compress) > 0 {
		_, coding, _ := choose(nil, rule, r.Header, false)
		return coding
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
