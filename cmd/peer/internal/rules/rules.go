// Package rules applies an operator's rules, which add to what clients and origins say: how long
// responses are stored, which query parameters are part of the key, what bypasses the cache, what is
// refused or redirected, and which header fields origins and clients get.
//
// A [Set] is plain data. Its rules are tried in order: each setting is decided by the first [Rule]
// that matches and has this setting; each header field, and each failure of an origin, is a setting of
// its own. Conditions are lists of patterns, or an expression: a [When]. [Set.Request] decides about a request when it
// arrives, [Set.Rewritten] changes the path that the origin gets, [Set.Response] the origin's response, and
// [Set.Deliver] what a client gets of it. The decision about storing a response is written into its header, as a
// targeted Cache-Control for peers only (RFC 9213), so that siblings that get the response decide alike. All functions
// are pure and safe for concurrent use.
package rules

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// What happens to a response with Set-Cookie.
const (
	Refuse = "refuse" // it is not stored; this is the default
	Store  = "store"  // it is stored with the cookie
	Drop   = "drop"   // it is stored without the cookie, which the client does not get either
)

// Shared is the value of [Rule.Authorized] for answers that are the same for everybody.
const Shared = "shared"

// A Rule has conditions and settings. It matches if all its conditions are met. In patterns *
// matches any characters. A condition about an ambiguous path (see [canonical.Ambiguous]), or about anything else that
// is not known (see [When]), counts for the settings that restrict (Deny, Rate, MaxBody, Bypass, MaxTTL, and SetCookie
// to refuse), and for no others. The tags are the keys of the configuration file, and whether a
// setting is of answers, so that its conditions may be about them.
type Rule struct {
	Name  string // its name in responses and in [Decision]: usually its number
	Where string // its place in the configuration, for the operator

	When *When `name:"when" type:"when"` // an expression; the other conditions are short forms

	// Conditions about the request: the scheme, patterns of the URL's host and path, and of names of
	// cookies and header fields, of which the request must have one; nil or "" = no condition. A host
	// stands for all its ports.
	Scheme  string   `name:"scheme" type:"choice" oneof:"http,https"`
	Sites   []string `name:"site" type:"hosts" lower:"host"`
	Paths   []string `name:"path" type:"path"`
	Cookies []string `name:"cookie" type:"cookie"`
	Headers []string `name:"header" type:"header"`
	// Clients are networks of the client, for Deny, Rate and MaxBody only: all clients share what is stored.
	Clients []netip.Prefix `name:"client" type:"network"`

	// Conditions about the response: its status, and patterns of its media type without
	// parameters; nil = no condition. Without Statuses, TTL applies to statuses below 500 that are
	// cacheable by default.
	Statuses []Range  `name:"status" type:"status"`
	Types    []string `name:"type" type:"media" lower:"yes"`

	// The settings; nil or "" = the rule does not have this setting.

	Deny     *bool   `name:"deny" type:"boolean"` // answer 403
	Rate     *Rate   `name:"rate" type:"rate"`
	MaxBody  *int64  `name:"max-body" type:"size"` // bytes of a request's body; 0 = any number
	Redirect *Target `name:"redirect" type:"redirect"`
	Rewrite  *Target `name:"rewrite" type:"rewrite"`              // the path that the origin gets
	Failover *bool   `name:"failover" of:"answer" type:"boolean"` // ask another origin of the site
	// RequestHeader changes the request before anything looks at its fields; ResponseHeader the answer
	// when it is sent to a client: neither what is stored nor what siblings get.
	RequestHeader  []Field `name:"request-header" type:"request-field"`
	ResponseHeader []Field `name:"response-header" of:"answer" type:"response-field"`

	// send the request to the origin and do not store the response
	Bypass *bool `name:"bypass" type:"boolean"`
	// ignore a client's directives for a newer response than the stored one
	IgnoreNoCache *bool    `name:"ignore-no-cache" type:"boolean"`
	QueryKeep     []string `name:"query-keep" type:"parameter"`
	QueryDrop     []string `name:"query-drop" type:"parameter"`
	QuerySort     *bool    `name:"query-sort" type:"boolean"`
	// Encodings are the content codings that the origin can produce, best first. The origin is
	// asked for the first one that the client accepts.
	Encodings []string `name:"encodings" type:"choice" lower:"yes" oneof:"br,zstd,gzip,deflate,compress"`
	// Compress are the codings, best first, by which the peer compresses an uncompressed response
	// of the origin. Encodings take precedence. Empty = do not compress.
	Compress []string `name:"compress" type:"coding" lower:"yes"`
	// other cookies are not sent to the origin
	CookiesKeep []string `name:"cookies-keep" type:"cookie"`
	// one of the constants above
	SetCookie string `name:"set-cookie" of:"answer" type:"choice" oneof:"refuse,store,drop"`

	// TTL is the lifetime of a response that states none, counted from its arrival, if the origin got
	// no cookie with the request but those in the key. MinTTL and MaxTTL bound any lifetime. None of them stores a
	// response that forbids it.
	TTL    *time.Duration `name:"ttl" of:"answer" type:"seconds"`
	MinTTL *time.Duration `name:"min-ttl" of:"answer" type:"seconds"`
	MaxTTL *time.Duration `name:"max-ttl" of:"answer" type:"seconds"`

	// StaleWhileRevalidate is for how long a stale response is served while it is fetched anew, and StaleIfError for
	// how long if the origin fails (RFC 5861). They replace the origin's, but not its must-revalidate.
	StaleWhileRevalidate *time.Duration `name:"stale-while-revalidate" of:"answer" type:"seconds"`
	StaleIfError         *time.Duration `name:"stale-if-error" of:"answer" type:"seconds"`
	// IgnoreOrigin are fields of the origin that do not count for the cache, unless the response may be personal: the
	// origin got a cookie or Authorization that is not in the key, or sends a cookie that is stored.
	IgnoreOrigin []string `name:"ignore-origin" of:"answer" type:"choice" lower:"yes" oneof:"cache-control,expires"`
	// Key are fields and cookies of the request that are part of the key, as header.NAME and cookie.NAME. What may
	// match restricts, since it only divides.
	Key []string `name:"key" type:"key"`
	// Authorized is [Shared] if responses to requests with Authorization are the same for everybody; errors are, too,
	// only if the rule has conditions about the status.
	Authorized string `name:"authorized" of:"answer" type:"choice" oneof:"refuse,shared"`
	// Follow are patterns of hosts to which redirects of the origin are followed, so that their target is stored under
	// the URL that was asked for. Empty = none.
	Follow []string `name:"follow" of:"answer" type:"hosts" lower:"host"`
	// MinUses is how often a peer must have fetched a URL before it stores the response; 0 and 1 = at once.
	MinUses   *uint64 `name:"min-uses" of:"answer" type:"count" min:"1" max:"1000"`
	ErrorPage *Page   `name:"error-page" of:"answer" type:"page"`
}

// A Page is what clients get instead of the body of an answer.
type Page struct {
	File string
	Type string // Content-Type
	Body []byte
}

// String returns the page as it is written in the configuration.
func (p Page) String() string { return p.File }

// A Rate is a number of requests from one address in a time: that many at once, and no more of them in
// the long run than that.
type Rate struct {
	Requests int // 0 = any number, an exception from later rules
	Per      time.Duration
}

// String returns the rate as it is written in the configuration.
func (r *Rate) String() string {
	return strconv.Itoa(r.Requests) + "r/" +
		map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[r.Per]
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

// match reports whether all conditions of the rule are met. The keys beside When are short forms: each means its
// variable in a list of patterns, or one of its patterns in the names of cookies or header fields.
func (r *Rule) match(f facts) truth {
	switch {
	case r.Scheme != "" && r.Scheme != f.q.URL.Scheme, r.Sites != nil && !anyHost(r.Sites, f.q.URL.Host),
		r.Paths != nil && !f.ambiguous && !anyGlob(r.Paths, f.q.URL.Path),
		r.Cookies != nil && !has(f, "cookie", r.Cookies), r.Headers != nil && !has(f, "header", r.Headers),
		r.Clients != nil && f.client.IsValid() && !inAny(r.Clients, f.client),
		r.Statuses != nil && f.status != 0 && !slices.ContainsFunc(r.Statuses, func(s Range) bool { return s.From <= f.status && f.status <= s.To }),
		r.Types != nil && f.answered() && !anyGlob(r.Types, mediaType(f.h)):
		return no
	case r.Paths != nil && f.ambiguous, r.Clients != nil && !f.client.IsValid(), r.Statuses != nil && f.status == 0, r.Types != nil && !f.answered():
		return min(maybe, r.When.of(f))
	}
	return r.When.of(f)
}

// decide returns the first rule that has a setting and matches, or may match if it restricts by it.
func (s Set) decide(f facts, setting func(*Rule) (has, restricts bool)) *Rule {
	f.ambiguous = canonical.Ambiguous(f.q.URL)
	for i := range s {
		r := &s[i]
		if has, restricts := setting(r); has {
			if t := r.match(f); t == yes || t == maybe && restricts {
				return r
			}
		}
	}
	return nil
}

// anyHost reports whether a host, or the host without its port, matches one of the patterns.
func anyHost(patterns []string, host string) bool {
	return anyGlob(patterns, host) || anyGlob(patterns, withoutPort(host))
}

func withoutPort(host string) string {
	name, _ := canonical.SplitHost(host)
	return name
}

// mediaType returns the type in a header, in lower case and without parameters.
func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

func has(f facts, in string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		_, n := find(f, in, canonicalName(in, p))
		return n > 0
	})
}

// ByClient reports whether a rule has a condition about the client's address.
func (s Set) ByClient() bool {
	return slices.ContainsFunc(s, func(r Rule) bool { return r.byClient() })
}

func (r *Rule) byClient() bool { return r.Clients != nil || r.Uses("client") }

// OfResponses reports whether the rule has conditions about responses.
func (r *Rule) OfResponses() bool {
	return r.Statuses != nil || r.Types != nil || r.When != nil && OfAnswers(r.When.Uses)
}

// OfAnswers reports whether variables of an expression are those of answers.
func OfAnswers(uses []string) bool {
	return use(uses, "status", "type", "length", "outcome", "answer.")
}

// use reports whether an expression with these variables has one of the names; one that ends in a dot stands for its
// members.
func use(uses []string, names ...string) bool {
	return slices.ContainsFunc(uses, func(used string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return used == name || strings.HasSuffix(name, ".") && strings.HasPrefix(used, name)
		})
	})
}

// Uses reports whether the expression of the rule has one of these variables; a name that ends in a dot stands for all
// that begin with it.
func (r *Rule) Uses(names ...string) bool { return r.When != nil && use(r.When.Uses, names...) }

// Label returns the rule's name and place, for the operator.
func (r *Rule) Label() string {
	if r.Where == "" {
		return r.Name
	}
	return r.Name + " (" + r.Where + ")"
}
