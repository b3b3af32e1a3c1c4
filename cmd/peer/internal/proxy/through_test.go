package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// A leg is how one of two ends speaks HTTP.
type leg string

const (
	overOne leg = "HTTP/1.1"
	inClear leg = "HTTP/2 by prior knowledge"
	mixed   leg = "HTTP/1.1 or HTTP/2 by prior knowledge"
	overT   leg = "HTTP/2 by TLS"
)

// through starts a reverse proxy for an origin. It returns a client of the proxy, the proxy's URL and
// the proxy.
func through(t *testing.T, in, out leg, origin http.HandlerFunc, tune ...func(*Site)) (*http.Client, string, *Handler) {
	t.Helper()
	start := func(l leg, h http.Handler, header int) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.MaxHeaderBytes = header
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(l == overOne || l == mixed)
		s.Config.Protocols.SetUnencryptedHTTP2(l == inClear || l == mixed)
		if s.EnableHTTP2 = l == overT; l == overT {
			s.Config.Protocols.SetHTTP2(true)
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s
	}
	from := start(out, origin, 4<<10)
	site := Site{Origins: mustURLs(from.URL)}
	switch out {
	case inClear:
		site.Origins[0].Scheme = "h2c"
	case overT:
		pool := x509.NewCertPool()
		pool.AddCert(from.Certificate())
		site.TLS = &tls.Config{RootCAs: pool, ServerName: "example.com"}
	}
	for _, f := range tune {
		f(&site)
	}
	h, err := New(Config{Settings: Settings{Sites: []Site{site}}, Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	peer := start(in, h, 64<<10)
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	transport.Protocols.SetHTTP1(in == overOne || in == mixed)
	transport.Protocols.SetUnencryptedHTTP2(in == inClear)
	transport.Protocols.SetHTTP2(in == overT)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}, peer.URL, h
}

// Trailers arrive in both directions, whether they were announced or not, and so does the TE
// that asks for them.
func TestTrailers(t *testing.T) {
	legs := []leg{overOne, inClear, overT}
	for _, in := range legs {
		for _, out := range legs {
			for _, c := range []struct {
				name, method, announce, body string
				early                        bool // the header is sent before the body
			}{
				{"not announced", "POST", "", "body", false},
				{"not announced, header first", "POST", "", "body", true},
				{"not announced, no body", "POST", "", "", true},
				{"announced", "POST", "X-Status", "body", false},
				{"one of two announced", "POST", "X-Other", "body", false},
				{"GET that is not shared", "GET", "", "body", false},
				{"GET that is not shared, no body", "GET", "", "", true},
				{"nothing announced by the client", "PUT", "", "body", true},
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", in, out, c.name), func(t *testing.T) {
					var got http.Header
					var te string
					client, base, _ := through(t, in, out, func(w http.ResponseWriter, r *http.Request) {
						te = r.Header.Get("Te")
						io.Copy(io.Discard, r.Body)
						got = r.Trailer
						w.Header().Set("Cache-Control", "no-store")
						if c.announce != "" {
							w.Header().Set("Trailer", c.announce)
						}
						if c.early || in == overOne || out == overOne { // otherwise there is a Content-Length, and HTTP/1 has no trailers then
							w.WriteHeader(200)
							w.(http.Flusher).Flush()
						}
						io.WriteString(w, c.body)
						for _, name := range []string{"X-Status", "X-Other"} {
							if c.announce != name {
								w.Header().Set(http.TrailerPrefix+name, name+" 7")
							} else {
								w.Header().Set(name, name+" 7")
							}
						}
						w.Header().Set(http.TrailerPrefix+"Content-Length", "9")
					})
					late := http.Header{"X-Sum": {"12"}}
					if c.method == "PUT" {
						late = http.Header{}
					}
					var body io.Reader
					if c.method != "GET" {
						body = io.MultiReader(strings.NewReader("request"), ending(func() { late.Set("X-Late", "3") }))
					}
					r, _ := http.NewRequest(c.method, base+"/x", body)
					r.Header.Set("Te", "trailers")
					if c.method != "GET" {
						r.Trailer = late
					}
					resp, err := client.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					text, err := io.ReadAll(resp.Body)
					if err != nil || string(text) != c.body || resp.Trailer.Get("X-Status") != "X-Status 7" || resp.Trailer.Get("X-Other") != "X-Other 7" || resp.Trailer["Content-Length"] != nil {
						t.Errorf("body %q, %v, trailers %v", text, err, resp.Trailer)
					}
					if c.method == "POST" && (got.Get("X-Sum") != "12" || te != "trailers") {
						t.Errorf("the origin got TE %q and trailers %v", te, got)
					}
					if c.method != "GET" && in == overOne && got.Get("X-Late") != "3" && out == overOne {
						t.Errorf("the origin got trailers %v, want that which was not announced as well", got)
					}
					if c.method == "GET" && te != "" {
						t.Errorf("the origin got TE %q with a request whose answer may be shared", te)
					}
				})
			}
		}
	}
}

// Both directions flow at once, piece by piece: each piece is answered before the next is sent,
// and the header, if the length of the request is unknown, before the first.
func TestBothDirectionsAtOnce(t *testing.T) {
	const pieces, each = 20, 8
	for _, in := range []leg{overOne, inClear, overT} {
		for _, out := range []leg{overOne, inClear, overT, "length"} {
			t.Run(fmt.Sprintf("%s/%s", in, out), func(t *testing.T) {
				length := int64(-1)
				if out == "length" {
					out, length = overT, pieces*each
				}
				client, base, _ := through(t, in, out, func(w http.ResponseWriter, r *http.Request) {
					http.NewResponseController(w).EnableFullDuplex()
					w.WriteHeader(200)
					w.(http.Flusher).Flush()
					buf := make([]byte, 64)
					for {
						n, err := r.Body.Read(buf)
						w.Write(buf[:n])
						w.(http.Flusher).Flush()
						if err != nil {
							return
						}
					}
				})
				pr, pw := io.Pipe()
				r, _ := http.NewRequest("POST", base+"/x", pr)
				r.ContentLength = length
				send := func(i int) {
					fmt.Fprintf(pw, "piece %2d", i)
					if i == pieces-1 {
						pw.Close() // before the answer to it: the transport sends the last byte of a known length with the end
					}
				}
				if length > 0 {
					go send(0)
				}
				start := time.Now()
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if took := time.Since(start); took > 900*time.Millisecond {
					t.Errorf("the header took %v", took)
				}
				for i := range pieces {
					piece := fmt.Sprintf("piece %2d", i)
					if length < 0 || i > 0 {
						go send(i)
					}
					got := make([]byte, len(piece))
					if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != piece {
						t.Fatalf("sent %q, got %q, %v", piece, got, err)
					}
				}
				if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
					t.Errorf("after the end: %q, %v", rest, err)
				}
			})
		}
	}
}

// An origin hears that its client has gone, and a client that its origin has.
func TestCancelledStreams(t *testing.T) {
	for _, out := range []leg{overOne, inClear, overT} {
		t.Run(string(out), func(t *testing.T) {
			gone := make(chan error, 1)
			client, base, h := through(t, inClear, out, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(200)
				w.(http.Flusher).Flush()
				if r.URL.Path == "/broken" {
					panic(http.ErrAbortHandler)
				}
				<-r.Context().Done()
				gone <- r.Context().Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			r, _ := http.NewRequestWithContext(ctx, "POST", base+"/x", io.MultiReader(strings.NewReader("x")))
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			select {
			case <-gone:
			case <-time.After(10 * time.Second):
				t.Error("the origin does not hear that the client has gone")
			}
			resp.Body.Close()
			r, _ = http.NewRequest("POST", base+"/broken", io.MultiReader(strings.NewReader("x")))
			resp, err = client.Do(r)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Error("a broken answer ends as a whole one")
			}
			if f := h.FailingOrigins(); out != overOne && len(f) > 0 {
				t.Errorf("failing: %v", f)
			}
		})
	}
}

// Answers of an h2c origin are stored under http URLs, and a request for an upgrade gets an answer
// without one.
func TestClearOrigin(t *testing.T) {
	client, base, h := through(t, overOne, inClear, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "%s %s %s", r.Proto, r.URL.Path, r.Header.Get("Upgrade"))
	}, func(s *Site) { s.Origins[0].Path = "/below" })
	host := strings.TrimPrefix(base, "http://")
	for i, want := range []string{"a; fwd=", "a; hit"} {
		resp, err := client.Get(base + "/x")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "HTTP/2.0 /below/x " || !strings.HasPrefix(resp.Header.Get("Cache-Status"), want) {
			t.Errorf("request %d: %q, %v", i, body, resp.Header)
		}
	}
	for h.cache.Counters.Stored.Load() == 0 { // the second answer may have come from the body as it arrived
		runtime.Gosched()
	}
	if n, err := purge(h, "http://"+host+"/x", false); n != 1 || err != nil {
		t.Errorf("purge removed %d, %v", n, err)
	}
	r, _ := http.NewRequest("GET", base+"/socket", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(body) != "HTTP/2.0 /below/socket " || len(h.FailingOrigins()) > 0 {
		t.Errorf("an upgrade: %s %q, failing %v", resp.Status, body, h.FailingOrigins())
	}
	single, err := New(Config{Settings: Settings{Origin: &url.URL{Scheme: "h2c", Host: h.applied.Load().sites[0].backends[0].url.Host}}, Config: engine.Config{Name: "b"}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	answer := httptest.NewRecorder()
	single.ServeHTTP(answer, httptest.NewRequest("GET", "/y", nil))
	if answer.Body.String() != "HTTP/2.0 /y " {
		t.Errorf("as --origin: %d %q", answer.Code, answer.Body)
	}
}

// An ending is an empty reader that does something when it is read.
type ending func()

func (e ending) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}
