package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// html is a body whose type a server would guess.
const html = "<html><script>alert(1)</script>"

// answering is an origin that gives the same answer each time. The body to HEAD, 204 and 304 is empty.
func answering(status int, h http.Header) roundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		body, length := io.NopCloser(strings.NewReader(html)), int64(-1)
		switch {
		case r.Method == http.MethodHead || noBody(status):
			body, length = http.NoBody, 0
		case h["Content-Length"] != nil:
			length = int64(len(html))
		}
		return &http.Response{StatusCode: status, Header: h.Clone(), Body: body, ContentLength: length, Request: r}, nil
	}
}

// engineOf returns a cache before an origin.
func engineOf(t *testing.T, origin http.RoundTripper) *Cache {
	c, err := New(Config{Name: "c", Open: memstore.Open(64 << 20), Transport: origin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Nothing is added to an answer but Via, Cache-Status, Age of what is stored, Date where there is none, and the framing of
// the connection; nothing is left out but the fields of the connection and, of a 304 and a 204, what describes a body.
func TestPassesWhatCame(t *testing.T) {
	type sent struct {
		what   string
		status int
		fields []string
	}
	var answers []sent
	for _, a := range []sent{
		{"not stored", 200, []string{"Cache-Control: no-store"}},
		{"stored", 200, []string{"Cache-Control: max-age=60", "ETag: \"1\""}},
		{"stored missing", 404, []string{"Cache-Control: max-age=60"}},
		{"with a cookie", 200, []string{"Set-Cookie: a=b", "X-Content-Type-Options: nosniff"}},
		{"of a cache", 200, []string{"Age: 7", "Via: 1.1 other", "Cache-Status: other; hit"}},
		{"missing", 404, nil},
		{"failed", 500, []string{"X-Odd: 1", "X-Odd: 2"}},
		{"the highest status", 599, nil},
		{"coded", 200, []string{"Content-Encoding: br"}},
		{"part", 206, []string{"Content-Range: bytes 0-30/99"}},
		{"moved", 302, []string{"Location: /x"}},
		{"with a field for siblings", 200, []string{rfc9111.ClusterControl + ": max-age=60"}},
		{"empty", 204, nil},
		{"not modified", 304, []string{"ETag: \"1\""}},
	} {
		for _, more := range []string{"", "Content-Type: text/plain", "Date: Mon, 02 Jan 2006 15:04:05 GMT", fmt.Sprint("Content-Length: ", len(html))} {
			if fields := a.fields; more == "" || !noBody(a.status) || more[0] == 'D' {
				if more != "" {
					fields = append(slices.Clip(fields), more)
				}
				answers = append(answers, sent{a.what, a.status, fields})
			}
		}
	}
	for _, proto := range []string{"HTTP/1.0", "HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			for _, a := range answers {
				came := http.Header{}
				for _, line := range a.fields {
					name, value, _ := strings.Cut(line, ": ")
					came.Add(name, value)
				}
				c := engineOf(t, answering(a.status, came))
				get := clientOf(t, proto, c)
				for i, method := range []string{"GET", "GET", "HEAD", "POST", "OPTIONS", "GET of a part", "GET with a tag"} {
					method, form, _ := strings.Cut(method, " ")
					r, _ := http.NewRequest(method, fmt.Sprintf("http://o.test/%d", i%6), nil)
					switch {
					case i == 1, i == 2: // what the first has stored
						r.URL.Path = "/0"
					case form == "of a part":
						r.Header.Set("Range", "bytes=0-30")
					case form == "with a tag":
						r.Header.Set("If-None-Match", `"1"`)
					}
					resp := get(r)
					what := fmt.Sprintf("%s, %s %s %s %d %v", proto, a.what, method, form, a.status, a.fields)
					may := map[string]bool{"Content-Length": true, "Connection": true}
					if resp.Header["Date"] == nil || came["Date"] == nil {
						may["Date"] = true
					}
					if strings.Contains(strings.Join(resp.Header["Cache-Status"], ","), "stored") || strings.Contains(strings.Join(resp.Header["Cache-Status"], ","), "c; hit") {
						may["Age"] = true
					}
					if a.status == http.StatusOK && resp.StatusCode == http.StatusPartialContent {
						may["Content-Range"] = true
					}
					for name, lines := range resp.Header {
						switch {
						case name == "Via" && slices.Equal(lines, append(came["Via"], "1.1 c")),
							name == "Cache-Status" && len(lines) == len(came["Cache-Status"])+1,
							name == "Age" && came["Age"] != nil,
							may[name], slices.Equal(lines, came[name]):
						default:
							t.Errorf("%s: %s %q, came %q", what, name, lines, came[name])
						}
					}
					if resp.Header[rfc9111.ClusterControl] != nil {
						t.Errorf("%s: a client gets %s", what, rfc9111.ClusterControl)
					}
					for name := range came {
						if name != rfc9111.ClusterControl && resp.Header[name] == nil && !(resp.StatusCode == http.StatusNotModified && strings.HasPrefix(name, "Content-")) && name != "Content-Length" {
							t.Errorf("%s: no %s", what, name)
						}
					}
					if resp.Header["Via"] == nil || resp.Header["Cache-Status"] == nil || resp.Header["Date"] == nil {
						t.Errorf("%s: the answer lacks Via, Cache-Status or Date: %v", what, resp.Header)
					}
				}
			}
		})
	}
}

// clientOf returns a function that sends requests to a server whose handler is c, by a version of HTTP, and reads the answers.
func clientOf(t *testing.T, proto string, c *Cache) func(*http.Request) *http.Response {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Proto != proto {
			t.Errorf("a request by %s, want %s", r.Proto, proto)
		}
		r.URL.Scheme, r.URL.Host = "http", r.Host
		c.Serve(w, r)
	}))
	var protocols http.Protocols
	protocols.SetHTTP1(proto != "HTTP/2.0")
	protocols.SetUnencryptedHTTP2(proto == "HTTP/2.0")
	s.Config.Protocols = &protocols
	s.Start()
	t.Cleanup(s.Close)
	var to http.RoundTripper = &http.Transport{Protocols: &protocols, DisableCompression: true}
	if proto == "HTTP/1.0" {
		to = roundTripFunc(func(r *http.Request) (*http.Response, error) {
			conn, err := net.Dial("tcp", r.URL.Host)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { conn.Close() })
			fmt.Fprintf(conn, "%s %s HTTP/1.0\r\nHost: o.test\r\nContent-Length: 0\r\n", r.Method, r.URL.Path)
			r.Header.Write(conn)
			io.WriteString(conn, "\r\n")
			return http.ReadResponse(bufio.NewReader(conn), r)
		})
	}
	return func(r *http.Request) *http.Response {
		r.Host, r.URL.Host = "o.test", s.Listener.Addr().String()
		resp, err := to.RoundTrip(r)
		if err != nil {
			t.Fatalf("%s %s by %s: %v", r.Method, r.URL, proto, err)
		}
		if _, err = io.Copy(io.Discard, resp.Body); err != nil {
			t.Errorf("%s %s by %s: %v", r.Method, r.URL, proto, err)
		}
		resp.Body.Close()
		return resp
	}
}

// The fields that an answer's Connection names go, and never those that caches obey or that say what the answer is.
func TestFieldsOfTheConnection(t *testing.T) {
	for _, c := range []struct {
		connection string
		fields     []string
		shared     bool   // whether the next client gets the first one's answer
		gone       string // a field that no client gets
	}{
		{"Cache-Control", []string{"Cache-Control: private, max-age=600"}, false, ""},
		{"keep-alive, cache-control", []string{"Cache-Control: no-store", "Expires: Fri, 31 Dec 2100 23:59:59 GMT"}, false, ""},
		{"Vary", []string{"Cache-Control: max-age=600", "Vary: X-Client"}, false, ""},
		{"Set-Cookie", []string{"Cache-Control: max-age=600", "Set-Cookie: a=b"}, true, ""}, // whether cookies are shared is not the engine's to say
		{"CDN-Cache-Control", []string{"Cache-Control: max-age=600", "Cdn-Cache-Control: no-store"}, false, ""},
		{"Expires", []string{"Cache-Control: public", "Expires: 0"}, false, ""},
		{"Date, Age", []string{"Cache-Control: max-age=600", "Age: 700"}, false, ""},
		{"Content-Type, content-encoding, ETag, Last-Modified", []string{"Cache-Control: max-age=600", "Content-Type: a/b", "Content-Encoding: br", "Etag: \"1\"",
			"Last-Modified: Mon, 02 Jan 2006 15:04:05 GMT"}, true, ""},
		{"Surrogate-Key, via", []string{"Cache-Control: max-age=600", "Surrogate-Key: a", "Via: 1.1 other"}, true, ""},
		{"close, X-Hop", []string{"Cache-Control: max-age=600", "X-Hop: 1"}, true, "X-Hop"},
		{"x-hop", []string{"Cache-Control: no-store", "X-Hop: 1"}, false, "X-Hop"},
	} {
		n := 0
		origin := roundTripFunc(func(r *http.Request) (*http.Response, error) {
			n++
			h := fieldsOf(c.fields...)
			h["Connection"], h["X-N"] = []string{c.connection}, []string{strconv.Itoa(n)}
			return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(html)), ContentLength: int64(len(html))}, nil
		})
		synctest.Test(t, func(t *testing.T) {
			e := engineOf(t, origin)
			for client := range 2 {
				r, to := httptest.NewRequest("GET", "http://o.test/x", nil), httptest.NewRecorder()
				r.Header.Set("X-Client", strconv.Itoa(client))
				e.Serve(to, r)
				synctest.Wait()
				if client == 1 && (to.Header().Get("X-N") == "1") != c.shared {
					t.Errorf("Connection: %s, %q: the second client gets answer %s, shared %v", c.connection, c.fields, to.Header().Get("X-N"), c.shared)
				}
				for name, lines := range fieldsOf(c.fields...) {
					if got := to.Header()[name]; (name == c.gone) != (got == nil) || got != nil && name != "Age" && got[0] != lines[0] {
						t.Errorf("Connection: %s, client %d: %s %q, want %q but for %q", c.connection, client, name, got, lines, c.gone)
					}
				}
				if to.Header()["Connection"] != nil {
					t.Errorf("Connection: %s reaches client %d", c.connection, client)
				}
			}
		})
	}
}

// fieldsOf returns a header of lines "Name: value".
func fieldsOf(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h[name] = append(h[name], value)
	}
	return h
}

// bodyOf is a body that notes when it is closed.
type bodyOf struct {
	io.Reader
	closed func()
}

func (b bodyOf) Close() error { b.closed(); return nil }

// What a transport takes for an answer and is none, since its status is not final or the name of a field no token, is
// refused with 502, or a stale copy is served in its place, on every way by which an answer of an origin comes.
func TestBrokenAnswers(t *testing.T) {
	for _, c := range []struct {
		status int
		field  string
		broken bool
	}{
		{0, "X-A", true}, {42, "X-A", true}, {99, "X-A", true}, {100, "X-A", true}, {101, "X-A", true}, {103, "X-A", true}, {199, "X-A", true},
		{600, "X-A", true}, {999, "X-A", true}, {200, "Cache-Control ", true}, {200, "", true}, {404, "A B", true}, {304, "Set-Cookie\t", true}, {200, "a\u00e9", true},
		{200, "X-A", false}, {299, "!#$%&'*+-.^_`|~", false}, {404, "x", false}, {599, "X-A", false},
	} {
		var open atomic.Int64 // bodies
		broken := func(r *http.Request) *http.Response {
			open.Add(1)
			return &http.Response{StatusCode: c.status, Header: http.Header{c.field: {"private"}, "Cache-Control": {"max-age=60"}},
				Body: bodyOf{strings.NewReader("new"), func() { open.Add(-1) }}, ContentLength: 3}
		}
		for _, way := range []string{"GET", "HEAD", "POST", "OPTIONS", "range", "no-store", "validation", "background", "slice"} {
			synctest.Test(t, func(t *testing.T) {
				var requests atomic.Int64 // slices are requested ahead
				e := engineOf(t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
					if requests.Add(1) > 1 || way != "validation" && way != "background" && way != "slice" {
						return broken(r), nil
					}
					h := fieldsOf("Cache-Control: max-age=10", "Etag: \"1\"", "Accept-Ranges: bytes")
					if way == "background" {
						h["Cache-Control"][0] = "max-age=10, stale-while-revalidate=60"
					}
					body, length := "old", int64(3)
					if way == "slice" {
						body, length = strings.Repeat("x", 2*SliceSize), DefaultLarge
					}
					return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: length}, nil
				}))
				serve := func(method string, fields ...string) (*httptest.ResponseRecorder, Result) {
					r, to := httptest.NewRequest(method, "http://o.test/x", nil), httptest.NewRecorder()
					r.Header = fieldsOf(fields...)
					res := e.Serve(to, r)
					synctest.Wait()
					return to, res
				}
				method, fields := "GET", []string(nil)
				switch way {
				case "HEAD", "POST", "OPTIONS":
					method = way
				case "range":
					fields = []string{"Range: bytes=0-1"}
				case "no-store":
					fields = []string{"Cache-Control: no-store"}
				case "validation", "background":
					serve("GET")
					time.Sleep(20 * time.Second)
				}
				to, res := serve(method, fields...)
				want, errors := http.StatusBadGateway, uint64(1)
				switch {
				case !c.broken:
					want, errors = c.status, 0
				case way == "validation", way == "background":
					want = http.StatusOK
				case way == "slice": // it began with an answer that was none of these
					want, errors = http.StatusOK, e.OriginErrors.Load()
					if !res.Broken || errors == 0 {
						t.Errorf("%d %q in place of a slice: %+v, %d errors of origins", c.status, c.field, res, errors)
					}
				}
				if way == "background" || !c.broken && (way == "range" || way == "slice" || way == "validation") {
					want = to.Code // a sound answer is judged by other tests
				}
				if to.Code != want || res.Status != want || e.OriginErrors.Load() != errors {
					t.Errorf("%d %q to %s: %d, Result.Status %d, %d errors of origins, want %d and %d", c.status, c.field, way, to.Code, res.Status, e.OriginErrors.Load(), want, errors)
				}
				if body := to.Body.String(); c.broken && (way == "validation" || way == "background") && body != "old" {
					t.Errorf("%d %q to %s: %q, want the stale copy", c.status, c.field, way, body)
				}
				if open.Swap(0) > 0 && c.broken {
					t.Errorf("%d %q to %s: its body is not closed", c.status, c.field, way)
				}
				for range e.store.Keys() {
					if c.broken && way != "validation" && way != "background" && way != "slice" {
						t.Errorf("%d %q to %s is stored", c.status, c.field, way)
					}
				}
			})
		}
	}
}

// oneSibling is a locator that finds the same sibling for everything.
type oneSibling struct{}

func (oneSibling) Candidates(dst []sibling.Candidate, _ string) []sibling.Candidate {
	return append(dst, sibling.Candidate{Peer: "b", Service: "b.test:80"})
}
func (oneSibling) Distrust(string) {}

// A sibling's broken answer is none, as an origin's is.
func TestBrokenAnswersOfSiblings(t *testing.T) {
	for _, c := range []struct {
		status int
		field  string
		want   string
	}{{200, "X-A", "sibling"}, {200, "Cache-Control ", "origin"}, {200, "A B", "origin"}, {600, "X-A", "origin"}, {999, "X-A", "origin"}, {42, "X-A", "origin"}} {
		synctest.Test(t, func(t *testing.T) {
			answer := func(status int, field, body string) roundTripFunc {
				return func(r *http.Request) (*http.Response, error) {
					h := http.Header{"Cache-Control": {"max-age=60"}, "Cache-Status": {"b; hit"}, field: {"private"}}
					return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
				}
			}
			siblings, err := sibling.New(sibling.Config{Name: "c", Locator: oneSibling{}, HTTP: answer(c.status, c.field, "sibling")})
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(Config{Name: "c", Open: memstore.Open(1 << 20), Siblings: siblings, Transport: answer(200, "X-A", "origin")})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			to := httptest.NewRecorder()
			e.Serve(to, httptest.NewRequest("GET", "http://o.test/x", nil))
			if synctest.Wait(); to.Body.String() != c.want {
				t.Errorf("a sibling answers %d %q: the client gets that of the %s, want %s", c.status, c.field, to.Body, c.want)
			}
		})
	}
}

// statuses are those that were written to an answer.
type statuses struct {
	*httptest.ResponseRecorder
	written *[]int
}

func (s statuses) WriteHeader(status int) { *s.written = append(*s.written, status) }

// Only statuses of interim answers are passed on as such, whatever a transport calls one.
func TestInterimStatuses(t *testing.T) {
	e := engineOf(t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
		for _, code := range []int{0, 99, 100, 101, 103, 199, 200, 404, 999} {
			httptrace.ContextClientTrace(r.Context()).Got1xxResponse(code, textproto.MIMEHeader{})
		}
		return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody}, nil
	}))
	var got []int
	e.Serve(statuses{httptest.NewRecorder(), &got}, httptest.NewRequest("POST", "http://o.test/x", nil))
	if want := []int{103, 199, 204}; !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
}

// What a handler answers is described as a server would send it: a type is guessed unless its field says that there is
// none, and the names of trailers are no fields.
func TestPipedHeader(t *testing.T) {
	for _, c := range []struct {
		what string
		set  http.Header
		want http.Header
	}{
		{"nothing said", http.Header{}, http.Header{"Content-Type": {"text/html; charset=utf-8"}}},
		{"no type", http.Header{"Content-Type": nil}, http.Header{"Content-Type": nil}},
		{"a type", http.Header{"Content-Type": {"a/b"}}, http.Header{"Content-Type": {"a/b"}}},
		{"a trailer", http.Header{"Content-Type": {"a/b"}, http.TrailerPrefix + "Sum": {"1"}}, http.Header{"Content-Type": {"a/b"}}},
	} {
		w := &Piped{Sniff: true}
		resp, err := w.Receive(httptest.NewRequest("GET", "/", nil), func() error {
			for name, lines := range c.set {
				w.Header()[name] = lines
			}
			_, err := io.WriteString(w, html)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if io.Copy(io.Discard, resp.Body); !reflect.DeepEqual(resp.Header, c.want) {
			t.Errorf("%s: %v, want %v", c.what, resp.Header, c.want)
		}
	}
}
