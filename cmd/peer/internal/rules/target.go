package rules

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// A Target is the place that a request is redirected to, or the path that an origin gets. In its text * stands for what
// the * in the rule's path matched, {host} for the client's host without its port, and {uri} for the path and the
// query. The query is appended unless the text has one, or {uri}.
type Target struct {
	Text   string // a URL with scheme and host, or a path; "" = none, an exception from later rules
	Status int    // of a redirect; 0 = 302
}

// Location returns the status and the Location of a redirect for a request with the URL u, from a client
// that used host. prefix is the beginning of u's path, as it is escaped, that clients do not see.
func (r *Rule) Location(u *url.URL, host, prefix string) (status int, to string) {
	query := ""
	if u.RawQuery != "" {
		query = "?" + u.RawQuery
	}
	text := r.Redirect.Text
	to = strings.NewReplacer("*", r.captured(text, u), "{host}", host, "{uri}",
		strings.TrimPrefix(u.EscapedPath(), prefix)+query).Replace(text)
	if !strings.Contains(text, "?") && !strings.Contains(text, "{uri}") {
		to += query
	}
	if strings.HasPrefix(to, "//") {
		to = "/." + to // otherwise it would lead to another host
	}
	if status = r.Redirect.Status; status == 0 {
		status = http.StatusFound
	}
	return status, to
}

// Rewritten returns the URL of q with the path that the origin gets; nil = it gets q's. A path that some
// servers would take for another one is not made: a client would have a say in it.
func (s Set) Rewritten(q *http.Request) *url.URL {
	r := s.decide(facts{q: q}, func(r *Rule) (has, restricts bool) { return r.Rewrite != nil, false })
	if r == nil {
		return nil
	}
	raw := strings.ReplaceAll(r.Rewrite.Text, "*", r.captured(r.Rewrite.Text, q.URL))
	path, err := url.PathUnescape(raw)
	if r.Rewrite.Text == "" || err != nil || !canonical.Plain(raw) {
		return nil
	}
	u := *q.URL
	u.Path, u.RawPath = path, raw
	return &u
}

// captured returns what the * in text stands for: what the * in the first of the rule's paths that
// matches u matched, as it is escaped there. Each of the paths has one * then.
func (r *Rule) captured(text string, u *url.URL) string {
	i := slices.IndexFunc(r.Paths, func(pattern string) bool { return invalidation.Glob(pattern, u.Path) })
	if i < 0 || !strings.Contains(text, "*") {
		return ""
	}
	before, after, _ := strings.Cut(r.Paths[i], "*")
	raw := u.EscapedPath()
	return raw[escaped(raw, len(before)):escaped(raw, len(u.Path)-len(after))]
}

// escaped returns the length of the beginning of an escaped path that n bytes are decoded from.
func escaped(raw string, n int) (i int) {
	for ; n > 0; n-- {
		if raw[i] == '%' {
			i += 2
		}
		i++
	}
	return i
}
