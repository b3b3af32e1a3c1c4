package sibling

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// A Transport is an [http.RoundTripper] that looks for what a GET asks for at the
// siblings whose digests list it, and else asks the origin. It stands under a
// cache, which sees the answer as if it were the origin's, Age included, with the
// sibling as the last member of Cache-Status. It is safe for concurrent use; its
// fields must not change meanwhile.
//
// Not asked of siblings, but of the origin alone, is what no shared cache may
// answer, or not in full: methods other than GET, requests with credentials
// (Authorization), a body, a range, "no-cache", "no-store" or "max-age=0". Cookies
// stay between the client and the origin: siblings are not told them. An answer that
// is private, stale or varies by a field that siblings are not told is a false hit.
//
// A request that is only-if-cached gets 504 and asks nobody, since it comes from
// a cache that did not find its object: so questions can't go in circles, whatever
// cache stands above.
type Transport struct {
	Siblings *Client
	Origin   http.RoundTripper // nil = http.DefaultTransport
	// Identity is under what siblings list the object that a request is for; nil
	// is the function Identity. It must be that which goes into the filters.
	Identity func(*http.Request) string
}

// Identity is "GET" and the URL of a request, without user and fragment, as peers
// list what does not vary.
func Identity(r *http.Request) string {
	u := *r.URL
	u.Fragment, u.RawFragment, u.User = "", "", nil
	return "GET " + u.String()
}

// RoundTrip implements [http.RoundTripper]. An error is the origin's, or that of
// the request's context.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if IsQuestion(r) {
		if r.Body != nil {
			r.Body.Close()
		}
		return notHere(r, t.Siblings.cfg.Name), nil
	}
	if !mayAsk(r) {
		return t.origin().RoundTrip(r)
	}
	identity := Identity
	if t.Identity != nil {
		identity = t.Identity
	}
	q := Question{
		URL: r.URL, Host: r.Host, Identities: []string{identity(r)}, Header: questionHeader(r, t.Siblings.cfg.Name),
		Origin: func(ctx context.Context, _ http.Header) (*http.Response, error) {
			return t.origin().RoundTrip(r.WithContext(ctx))
		},
	}
	q.Accept = func(a *Answer) bool { return usable(a.Response, r.Header, q.Header, a.Arrived) }
	a, err := t.Siblings.Ask(q).Next(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	a.Response.Request = r
	return a.Response, nil
}

func (t *Transport) origin() http.RoundTripper {
	if t.Origin == nil {
		return http.DefaultTransport
	}
	return t.Origin
}

// CloseIdleConnections closes those to siblings and to the origin that no request
// uses.
func (t *Transport) CloseIdleConnections() {
	t.Siblings.CloseIdleConnections()
	if o, ok := t.origin().(interface{ CloseIdleConnections() }); ok {
		o.CloseIdleConnections()
	}
}

// mayAsk reports whether siblings may answer a request.
func mayAsk(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != "" || r.Body != nil && r.Body != http.NoBody {
		return false
	}
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return false
	}
	for _, name := range []string{"Authorization", "Range", "If-Match", "If-Unmodified-Since", "Upgrade"} {
		if r.Header[name] != nil {
			return false
		}
	}
	cc := directives(r.Header)
	if _, given := r.Header["Cache-Control"]; !given {
		cc = members(r.Header["Pragma"]) // RFC 9111 section 5.4
	}
	return !has(cc, "no-cache") && !has(cc, "no-store") && !has(cc, "max-age=0")
}

// told are the fields of a request that siblings are told: what selects a
// variant, and validators.
var told = []string{"Accept", "Accept-Encoding", "Accept-Language", "Accept-Charset", "User-Agent", "Origin",
	"If-None-Match", "If-Modified-Since"}

// questionHeader is the header of the question for what r asks for.
func questionHeader(r *http.Request, name string) http.Header {
	h := http.Header{}
	for _, field := range told {
		if lines := r.Header[field]; lines != nil {
			h[field] = lines
		}
	}
	cc := "only-if-cached"
	for _, d := range directives(r.Header) {
		if strings.HasPrefix(d, "max-age=") || strings.HasPrefix(d, "min-fresh=") {
			cc += ", " + d
		}
	}
	h["Cache-Control"] = []string{cc}
	h["Via"] = append(append([]string(nil), r.Header["Via"]...), "1.1 "+name)
	return h
}

// usable reports whether a sibling's answer may stand for the origin's: shareable,
// fresh by our clock, and selected by what the sibling was told.
func usable(resp *http.Response, wanted, asked http.Header, now time.Time) bool {
	cc := directives(resp.Header)
	if has(cc, "private") || has(cc, "no-store") || has(cc, "no-cache") || isStale(resp.Header, cc, now) {
		return false
	}
	for _, field := range members(resp.Header["Vary"]) {
		field = http.CanonicalHeaderKey(field)
		if field == "*" || strings.Join(asked[field], ",") != strings.Join(wanted[field], ",") {
			return false
		}
	}
	return true
}

// notHere is the answer of a cache that may ask nobody.
func notHere(r *http.Request, name string) *http.Response {
	const text = "no fresh copy here\n"
	return &http.Response{
		StatusCode: http.StatusGatewayTimeout, Status: "504 Gateway Timeout",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Cache-Status": {name + "; detail=only-if-cached"}, "Content-Type": {"text/plain; charset=utf-8"}},
		Body:          io.NopCloser(strings.NewReader(text)),
		ContentLength: int64(len(text)),
		Request:       r,
	}
}
