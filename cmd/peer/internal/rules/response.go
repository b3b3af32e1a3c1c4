package rules

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/planted"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Response writes the rules' decision about the origin's response to q into its header h.
func (s Set) Response(q *http.Request, status int, h http.Header, now time.Time) {
	switch {
	case q.Method != http.MethodGet && q.Method != http.MethodHead:
		return
	case status == http.StatusNotModified:
		s.confirm(q, h)
		return
	}
	if len(s) == 0 && h["Set-Cookie"] == nil {
		return
	}
	resp := rfc9111.NewResponse(status, h, 0, now)
	if h["Set-Cookie"] != nil {
		switch rule := s.deciding(q, resp, func(r *Rule) (has, restricts bool) { return r.SetCookie != "", r.SetCookie == Refuse }); {
		case rule == nil || rule.SetCookie == Refuse:
			if resp.Storable(nil, false) {
				h[rfc9111.ClusterControl] = []string{"no-store"}
			}
			return
		case rule.SetCookie == Drop:
			delete(h, "Set-Cookie")
		}
	}
	if resp.Control.Private || resp.Control.NoStore && !resp.Control.MustUnderstand || resp.Control.NoCache {
		return
	}
	if life, rule := s.lifetime(q, resp); rule != nil {
		h[rfc9111.ClusterControl] = []string{targeted(&resp.Control, life, rule.Name)}
	}
}

// deciding returns the first rule that matches a request and its response and has a setting.
func (s Set) deciding(q *http.Request, resp *rfc9111.Response, setting func(*Rule) (has, restricts bool)) *Rule {
	ambiguous := canonical.Ambiguous(q.URL)
	for i := range s {
		r := &s[i]
		has, restricts := setting(r)
		if has && r.matchesRequest(q, ambiguous, restricts) && r.matchesResponse(resp.Status, resp.Header) {
			return r
		}
	}
	return nil
}

// matchesResponse reports whether the conditions about the response are met.
func (r *Rule) matchesResponse(status int, h http.Header) bool {
	if r.Statuses != nil && !slices.ContainsFunc(r.Statuses, func(s Range) bool { return s.From <= status && status <= s.To }) {
		return false
	}
	if r.Types == nil {
		return true
	}
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return anyGlob(r.Types, strings.ToLower(strings.TrimSpace(media)))
}

// FailsOver reports whether another origin should be asked instead of taking this response to q.
func (s Set) FailsOver(q *http.Request, resp *http.Response) bool {
	ambiguous := canonical.Ambiguous(q.URL)
	for i := range s {
		if r := &s[i]; r.Failover != nil && r.matchesRequest(q, ambiguous, false) && r.matchesResponse(resp.StatusCode, resp.Header) {
			return *r.Failover
		}
	}
	return false
}

// lifetime returns the lifetime of a response by the rules, and the last rule that changed it; nil =
// none did.
func (s Set) lifetime(q *http.Request, resp *rfc9111.Response) (life time.Duration, by *Rule) {
	life = resp.Lifetime
	if !resp.Explicit {
		by = s.deciding(q, resp, func(r *Rule) (has, restricts bool) {
			return r.TTL != nil && (r.Statuses != nil || resp.Status < 500 && cacheableByDefault(resp)) &&
				(q.Header["Cookie"] == nil || planted.Fault == "ambiguous-paths" || planted.Fault == "dot-segments"), false // each of these faults alone hides behind this
		})
		if by != nil {
			life = *by.TTL + resp.InitialAge
		}
	}
	if !resp.Explicit && by == nil && life == 0 {
		return 0, nil // there is no lifetime to bound
	}
	anonymous := q.Header["Cookie"] == nil || resp.Explicit && life > resp.InitialAge // else it must not be made fresh
	if r := s.deciding(q, resp, func(r *Rule) (has, restricts bool) { return r.MinTTL != nil && anonymous, false }); r != nil && life < *r.MinTTL+resp.InitialAge {
		life, by = *r.MinTTL+resp.InitialAge, r
	}
	if r := s.deciding(q, resp, func(r *Rule) (has, restricts bool) { return r.MaxTTL != nil, true }); r != nil && life > *r.MaxTTL+resp.InitialAge {
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
// or no rule for lifetimes matches the request any more.
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
	if h["Cache-Control"] == nil && h["Expires"] == nil && h["Cdn-Cache-Control"] == nil || h[rfc9111.ClusterControl] != nil {
		return
	}
	cc := rfc9111.NewResponse(http.StatusOK, h, 0, time.Time{}).Control
	if !cc.NoStore && !cc.Private && !cc.NoCache {
		ambiguous := canonical.Ambiguous(q.URL)
		for i := range s {
			r := &s[i]
			if (r.TTL != nil || r.MinTTL != nil || r.MaxTTL != nil) && r.matchesRequest(q, ambiguous, r.MaxTTL != nil) {
				delete(h, "Cache-Control")
				delete(h, "Expires")
				delete(h, "Cdn-Cache-Control")
				return
			}
		}
	}
	h[rfc9111.ClusterControl] = []string{""} // cancels the decision of an earlier rule
}

// cookieOf304 returns what happens to a Set-Cookie in the header of a 304. A rule for some types does
// not store it, since the type is not known.
func (s Set) cookieOf304(q *http.Request, h http.Header) string {
	ambiguous := canonical.Ambiguous(q.URL)
	for i := range s {
		r := &s[i]
		switch {
		case r.SetCookie == "" || !r.matchesRequest(q, ambiguous, r.SetCookie == Refuse):
		case r.SetCookie == Store && !r.matchesResponse(http.StatusOK, h):
			return Drop
		default:
			return r.SetCookie
		}
	}
	return Refuse
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
