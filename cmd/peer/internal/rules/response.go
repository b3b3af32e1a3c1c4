package rules

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Response writes the rules' decision about the origin's response to q into its header h, which arrived now. delay is
// the time since q was sent.
func (s Set) Response(q *http.Request, status int, h http.Header, now time.Time, delay time.Duration) {
	switch {
	case q.Method != http.MethodGet && q.Method != http.MethodHead:
		return
	case q.Header[rfc9111.KeyField] != nil && (status != http.StatusNotModified || h["Vary"] != nil):
		h["Vary"] = slices.Concat(h["Vary"], []string{rfc9111.KeyField})
	}
	if status == http.StatusNotModified {
		s.confirm(q, h)
		return
	}
	if len(s) == 0 && h["Set-Cookie"] == nil {
		return
	}
	resp, f := rfc9111.NewResponse(status, h, delay, now), facts{q: q, status: status, h: h}
	if h["Set-Cookie"] != nil {
		switch rule := s.decide(f, func(r *Rule) (has, restricts bool) { return r.SetCookie != "", r.SetCookie == Refuse }); {
		case rule == nil || rule.SetCookie == Refuse:
			if resp.Storable(nil, false) {
				h[rfc9111.ClusterControl] = []string{"no-store"}
			}
			return
		case rule.SetCookie == Drop:
			delete(h, "Set-Cookie")
		}
	}
	ignored, ignoring := s.ignored(f)
	if ignoring != nil {
		rest := h.Clone()
		for _, name := range ignored {
			delete(rest, name)
		}
		resp = rfc9111.NewResponse(status, rest, delay, now)
	}
	// lifetimes are in whole seconds, from the arrival
	resp.InitialAge = (resp.InitialAge + time.Second - 1).Truncate(time.Second)
	if resp.Control.Private || resp.Control.NoStore && !resp.Control.MustUnderstand || resp.Control.NoCache {
		return
	}
	life, rule := s.lifetime(f, resp)
	if rule == nil && resp.Explicit {
		rule = ignoring
	}
	if r := s.grace(f, resp, life, rule != nil); r != nil {
		rule = r
	}
	if r := s.authorized(f); r != nil {
		resp.Control.Public, rule = true, r
	}
	if rule != nil {
		h[rfc9111.ClusterControl] = []string{targeted(&resp.Control, life, rule.Name)}
	}
}

// ignored returns the fields of the origin that do not count for this response, and the rule that says so; nil = all
// count.
func (s Set) ignored(f facts) (names []string, by *Rule) {
	r := s.decide(f, func(r *Rule) (has, restricts bool) { return r.IgnoreOrigin != nil, len(r.IgnoreOrigin) == 0 })
	if r == nil || len(r.IgnoreOrigin) == 0 || !f.impersonal() || f.h["Set-Cookie"] != nil ||
		f.q.Header["Authorization"] != nil && s.authorized(f) == nil {
		return nil, nil
	}
	for _, field := range r.IgnoreOrigin {
		names = append(names, map[string][]string{"cache-control": {"Cache-Control", "Cdn-Cache-Control", "Pragma", "Surrogate-Control",
			"Edge-Control", "X-Accel-Expires"},
			"expires": {"Expires"}}[field]...)
	}
	return names, r
}

// grace sets for how long a response may be served stale. It returns the last rule that did; nil = none.
func (s Set) grace(f facts, resp *rfc9111.Response, life time.Duration, decided bool) (by *Rule) {
	if !decided && !resp.Explicit && life == 0 || !f.impersonal() && !(resp.Explicit && life > resp.InitialAge) {
		return nil // it has no lifetime, or one that must not grow
	}
	if r := s.decide(f, func(r *Rule) (has, restricts bool) { return r.StaleWhileRevalidate != nil, false }); r != nil {
		resp.Control.StaleWhileRevalidate, by = *r.StaleWhileRevalidate, r
	}
	if r := s.decide(f, func(r *Rule) (has, restricts bool) { return r.StaleIfError != nil, false }); r != nil {
		resp.Control.StaleIfError, by = *r.StaleIfError, r
	}
	return by
}

// authorized returns the rule by which a response to a request with a token is stored; nil = none.
func (s Set) authorized(f facts) *Rule {
	if f.q.Header["Authorization"] == nil {
		return nil
	}
	r := s.decide(f, func(r *Rule) (has, restricts bool) {
		byKey := f.byToken() && slices.Contains(r.Key, authorization)
		return byKey || r.Authorized != "" && (f.status < 400 || r.Statuses != nil || r.Uses("status")),
			r.Authorized == Refuse || byKey
	})
	if r == nil || r.Authorized == Refuse {
		return nil
	}
	return r
}

// FailsOver reports whether another origin should be asked instead of taking this response to q.
func (s Set) FailsOver(q *http.Request, resp *http.Response) bool {
	r := s.decide(facts{q: q, status: resp.StatusCode, h: resp.Header}, func(r *Rule) (has, restricts bool) { return r.Failover != nil, false })
	return r != nil && *r.Failover
}

// Follows reports whether the redirect to q that resp is is followed to a host.
func (s Set) Follows(q *http.Request, resp *http.Response, host string) bool {
	r := s.decide(facts{q: q, status: resp.StatusCode, h: resp.Header}, func(r *Rule) (has, restricts bool) { return r.Follow != nil, len(r.Follow) == 0 })
	return r != nil && anyHost(r.Follow, strings.ToLower(host))
}

// MinUses returns how often the response to q must have been fetched before it is stored.
func (s Set) MinUses(q *http.Request, resp *http.Response) uint64 {
	r := s.decide(facts{q: q, status: resp.StatusCode, h: resp.Header}, func(r *Rule) (has, restricts bool) {
		return r.MinUses != nil && resp.StatusCode != http.StatusNotModified, r.MinUses != nil && *r.MinUses > 1
	})
	if r == nil {
		return 1
	}
	return *r.MinUses
}

// lifetime returns the lifetime of a response by the rules, and the last rule that changed it; nil =
// none did.
func (s Set) lifetime(f facts, resp *rfc9111.Response) (life time.Duration, by *Rule) {
	life = resp.Lifetime
	if !resp.Explicit {
		by = s.decide(f, func(r *Rule) (has, restricts bool) {
			return r.TTL != nil && (r.Statuses != nil || r.Uses("status") || resp.Status < 500 &&
				cacheableByDefault(resp)) && f.impersonal(), false
		})
		if by != nil {
			life = *by.TTL + resp.InitialAge
		}
	}
	if !resp.Explicit && by == nil && life == 0 {
		return 0, nil // there is no lifetime to bound
	}
	anonymous := f.impersonal() || resp.Explicit && life > resp.InitialAge // else it must not be made fresh
	if r := s.decide(f, func(r *Rule) (has, restricts bool) { return r.MinTTL != nil && anonymous, false }); r != nil && life < *r.MinTTL+resp.InitialAge {
		life, by = *r.MinTTL+resp.InitialAge, r
	}
	if r := s.decide(f, func(r *Rule) (has, restricts bool) { return r.MaxTTL != nil, true }); r != nil && life > *r.MaxTTL+resp.InitialAge {
		life, by = *r.MaxTTL+resp.InitialAge, r
	}
	return life, by
}

// cacheableByDefault reports whether the status allows storing a response without a lifetime.
func cacheableByDefault(resp *rfc9111.Response) bool {
	bare := *resp
	bare.Header = http.Header{}
	return bare.Storable(nil, false)
}

// confirm is Response for a 304. The rules decided about the stored response when it arrived, by its
// status and type, which a 304 does not have. That decision stands, unless the 304 forbids storing,
// or no rule that wrote it matches the request any more.
func (s Set) confirm(q *http.Request, h http.Header) {
	if h["Set-Cookie"] != nil {
		switch s.cookieOf304(q, h) {
		case Refuse:
			if cc := rfc9111.NewResponse(http.StatusOK, h, 0, time.Time{}).Control; !cc.Private && !cc.NoStore {
				h[rfc9111.ClusterControl] = []string{"no-store"}
			}
		case Drop:
			delete(h, "Set-Cookie")
		}
	}
	ignored, _ := s.ignored(facts{q: q, status: http.StatusOK, h: h})
	for _, name := range ignored {
		delete(h, name)
	}
	if h["Cache-Control"] == nil && h["Expires"] == nil && h["Cdn-Cache-Control"] == nil ||
		h[rfc9111.ClusterControl] != nil {
		return
	}
	cc := rfc9111.NewResponse(http.StatusOK, h, 0, time.Time{}).Control
	if !cc.NoStore && !cc.Private && !cc.NoCache {
		plain := !canonical.Ambiguous(q.URL) // then only the answer is unknown
		if s.decide(facts{q: q, h: h}, func(r *Rule) (has, restricts bool) {
			return r.TTL != nil || r.MinTTL != nil || r.MaxTTL != nil || r.StaleWhileRevalidate != nil || r.StaleIfError != nil ||
				r.Authorized == Shared || slices.Contains(r.Key, authorization), r.MaxTTL != nil || plain && r.OfResponses()
		}) != nil {
			delete(h, "Cache-Control")
			delete(h, "Expires")
			delete(h, "Cdn-Cache-Control")
			return
		}
	}
	h[rfc9111.ClusterControl] = []string{""} // cancels the decision of an earlier rule
}

// cookieOf304 returns what happens to a Set-Cookie in the header of a 304. A rule for some types does
// not store it, since the type is not known.
func (s Set) cookieOf304(q *http.Request, h http.Header) string {
	f := facts{q: q, ambiguous: canonical.Ambiguous(q.URL), status: http.StatusOK, h: h, partly: true}
	r := s.decide(f, func(r *Rule) (has, restricts bool) {
		return r.SetCookie != "", r.SetCookie == Refuse || !f.ambiguous && r.OfResponses()
	})
	switch {
	case r == nil:
		return Refuse
	case r.SetCookie == Store && r.match(f) != yes:
		return Drop
	}
	return r.SetCookie
}

// targeted returns directives with another lifetime, as a structured dictionary.
func targeted(cc *rfc9111.Directives, life time.Duration, rule string) string {
	seconds := func(name string, d time.Duration) string {
		return name + "=" + strconv.FormatInt(int64(d/time.Second), 10)
	}
	name := "max-age"
	if cc.SMaxAge != rfc9111.Unset {
		name = "s-maxage"
	}
	items := []string{seconds(name, min(life, rfc9111.MaxDelta))}
	for _, d := range []struct {
		set  bool
		text string
	}{
		{cc.Public, "public"}, {cc.MustRevalidate, "must-revalidate"}, {cc.ProxyRevalidate, "proxy-revalidate"},
		{cc.MustUnderstand, "must-understand"}, {cc.NoStore, "no-store"},
		{cc.StaleWhileRevalidate != rfc9111.Unset, seconds("stale-while-revalidate", cc.StaleWhileRevalidate)},
		{cc.StaleIfError != rfc9111.Unset, seconds("stale-if-error", cc.StaleIfError)},
		{len(cc.NoCacheFields) > 0, `no-cache="` + strings.Join(cc.NoCacheFields, ", ") + `"`},
	} {
		if d.set {
			items = append(items, d.text)
		}
	}
	return strings.Join(append(items, `rule="`+rule+`"`), ", ")
}

// DecidedBy returns the name of the rule that set the lifetime of a stored response; "" = none did.
func DecidedBy(h http.Header) string {
	_, rest, ok := strings.Cut(h.Get(rfc9111.ClusterControl), `rule="`)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, `"`)
	return name
}
