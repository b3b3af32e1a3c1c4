package simulation

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutation"
)

// Odd requests are of the kinds by which one client may decide what others get. The origin is
// strict: it refuses them by answers that may be stored, unless the peer has made
// plain requests of them. Nobody else may get those answers.

// An oddity is a kind of odd request.
type oddity struct {
	what   string
	method string               // "" = GET
	target func(url int) string // nil = the page's path
	fields string               // each with its end of line
	host   string               // "" = the page's
	old    bool                 // HTTP/1.0
	body   string
}

var oddities = []oddity{
	{what: "a large field", fields: "X-Large: " + strings.Repeat("x", 9000) + "\r\n"},
	{what: "an expectation", fields: "Expect: 100-continue\r\n"},
	{what: "a range that ends before it begins", fields: "Range: bytes=5-2\r\n"},
	{what: "a range in lines", fields: "Range: lines=1-2\r\n"},
	{what: "no range", fields: "Range: bytes=abc\r\n"},
	{what: "a range beyond the end", fields: "Range: bytes=99999999-\r\n"},
	{what: "another host by a proxy", fields: "X-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n"},
	{what: "another scheme by a proxy", fields: "X-Forwarded-Proto: evil\r\n"},
	{what: "another path", fields: "X-Original-URL: /evil\r\nX-Rewrite-URL: /evil\r\n"},
	{what: "another method", fields: "X-HTTP-Method-Override: EVIL\r\n"},
	{what: "an underscore", fields: "X_Sort: evil\r\n"},
	{what: "a proxy for scripts", fields: "Proxy: http://evil.example\r\n"},
	{what: "an escaped digit", target: func(url int) string { s := fmt.Sprint(url); return fmt.Sprintf("/o/%%%x%s", s[0], s[1:]) }},
	{what: "a path with dots", target: func(url int) string { return fmt.Sprintf("/x/../o/%d", url) }},
	{what: "a path with escaped dots", target: func(url int) string { return fmt.Sprintf("/o/%%2e/%d", url) }},
	{what: "an empty segment", target: func(url int) string { return fmt.Sprintf("//o/%d", url) }},
	{what: "an escaped slash", target: func(url int) string { return fmt.Sprintf("/o%%2f%d", url) }},
	{what: "a query", target: func(url int) string { return fmt.Sprintf("/o/%d?evil", url) }},
	{what: "a fragment", target: func(url int) string { return fmt.Sprintf("/o/%d#evil", url) }},
	{what: "another host", host: "evil.example"},
	{what: "small letters", method: "get"},
	{what: "an unknown method", method: "EVIL"},
	{what: "a body", fields: "Content-Length: 4\r\n", body: "evil"},
	{what: "a type without a body", fields: "Content-Type: text/evil\r\nContent-Encoding: evil\r\n"},
	{what: "an upgrade", fields: "Connection: Upgrade\r\nUpgrade: evil\r\n"},
	{what: "Host in Connection", fields: "Connection: Host, Cache-Control\r\n"},
	{what: "HTTP/1.0", old: true},
	{what: "no store", fields: "Cache-Control: no-store\r\n"},
	{what: "what peers say", fields: "Summarycache-Body: :evil:\r\nCache-Status: p0; hit\r\nAge: 5\r\nVia: 1.1 evil\r\nMax-Forwards: 0\r\n"},
}

// askOddly returns the text of an odd request.
func (w *world) askOddly(r request) string {
	o := oddities[int(r.N)%len(oddities)]
	method, target, host, version := "GET", w.pathOf(r.URL), w.hostOf(r.URL), "HTTP/1.1"
	if o.method != "" {
		method = o.method
	}
	if o.target != nil {
		target = o.target(r.URL)
	}
	if o.host != "" {
		host = o.host
	}
	if o.old {
		version = "HTTP/1.0"
	}
	return fmt.Sprintf("%s %s %s\r\nHost: %s\r\n%s\r\n%s", method, target, version, host, o.fields, o.body)
}

// mutatedRequests adds mutated requests of the kinds that peers are tested with outside, and plain ones of other
// clients afterwards.
func (s *schedule) mutatedRequests(rng *rand.Rand) {
	for range 10 + rng.IntN(30) {
		r := request{At: rng.IntN(s.Seconds * 1000), Node: rng.IntN(s.Peers), URL: s.ordinary(rng), Kind: "mutated", N: rng.Int64N(1 << 30)}
		s.Requests = append(s.Requests, r)
		for _, after := range []int{30 + rng.IntN(100), 1000 + rng.IntN(6000)} {
			r.Kind, r.N, r.At, r.Node, r.Sort = "get", 0, r.At+after, rng.IntN(s.Peers), rng.IntN(3)
			s.Requests = append(s.Requests, r)
		}
	}
}

// mutated returns the text of a mutated request by HTTP/1.
func (w *world) mutated(r request) string {
	place := &mutation.Place{Name: w.hostOf(r.URL), Bases: []string{w.pathOf(r.URL)}, Share: 1}
	return string(mutation.New(w.s.Seed, int(r.N), []*mutation.Place{place}).Request("").Bytes())
}

// refuses returns the status with which the origin refuses a request; 0 = it is plain.
func (o *origin) refuses(r *http.Request) int {
	evil, large := false, 0
	for name, lines := range r.Header {
		for _, line := range lines {
			large = max(large, len(line))
			evil = evil || strings.Contains(strings.ToLower(line), "evil") && name != "Via"
		}
		evil = evil || strings.Contains(name, "_")
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	var url int
	n, _ := fmt.Sscanf(r.RequestURI, "/o/%d", &url)
	set := strings.TrimPrefix(r.Header.Get("Range"), "bytes=")
	switch {
	case !safe && r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed
	case n != 1 || r.RequestURI != o.w.pathOf(url):
		return http.StatusNotFound
	case large > 8000:
		return http.StatusRequestHeaderFieldsTooLarge
	case r.Header["Expect"] != nil:
		return http.StatusExpectationFailed
	case set != "" && (strings.Trim(set, "0123456789-") != "" || set == "5-2" || len(set) > 0 && strings.HasPrefix(set, "99999999")):
		return http.StatusRequestedRangeNotSatisfiable
	case evil, safe && r.ContentLength != 0, strings.Contains(r.Host, "evil"), r.Header["Upgrade"] != nil:
		return http.StatusBadRequest
	}
	return 0
}

// refuse writes an answer that may be stored.
func refusal(status int, now time.Time) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nDate: %s\r\nX-Odd: yes\r\nCache-Control: public, max-age=20\r\nContent-Length: 4\r\n\r\nevil",
		status, http.StatusText(status), now.UTC().Format(http.TimeFormat))
}

// judgeOdd checks that a plain request does not get what an odd one provoked.
func (w *world) judgeOdd(r *result) {
	if r.header["X-Odd"] != nil {
		w.fail("poison", r, "an answer to an odd request")
	}
	if r.Kind == "get" && r.status == http.StatusOK && slices.ContainsFunc(w.s.Requests, func(q request) bool {
		return (q.Kind == "odd" || q.Kind == "mutated") && q.URL == r.URL && w.at(q.At).Before(r.start)
	}) {
		w.sometimes("an answer after an odd request")
	}
	plain := []string{"get", "head", "no-cache", "slow", "stop", "leave", "hop", "window", "cookie", "authorized", "conditional"}
	if r.status >= 400 && r.status < 500 && slices.Contains(plain, r.Kind) {
		w.fail("error", r, "status %d", r.status)
	}
}
