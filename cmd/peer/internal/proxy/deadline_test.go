package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// Each wait for an origin ends at its deadline, and not before.
func TestOriginDeadlines(t *testing.T) {
	silent := func(context.Context, string, string) (net.Conn, error) { // takes everything, says nothing
		here, there := net.Pipe()
		go io.Copy(io.Discard, there)
		return here, nil
	}
	for name, c := range map[string]struct {
		dial   func(ctx context.Context, network, addr string) (net.Conn, error)
		tune   func(*Config)
		method string
		want   time.Duration
	}{
		"connect":    {unreachable, func(c *Config) { c.ConnectTimeout = 7 * time.Second }, "GET", 7 * time.Second},
		"default":    {unreachable, nil, "GET", time.Minute},
		"CONNECT":    {unreachable, func(c *Config) { c.ConnectTimeout, c.Origin = 7*time.Second, nil }, "CONNECT", 7 * time.Second},
		"first byte": {silent, func(c *Config) { c.FirstByteTimeout = 9 * time.Second }, "GET", 9 * time.Second},
		"takes nothing": {func(context.Context, string, string) (net.Conn, error) { here, _ := net.Pipe(); return here, nil },
			func(c *Config) { c.FirstByteTimeout = 8 * time.Second }, "GET", 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}, Dial: c.dial}
				cfg.Origin, _ = url.Parse("http://origin.example")
				if c.tune != nil {
					c.tune(&cfg)
				}
				h, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer h.Close()
				r := httptest.NewRequest(c.method, "/x", nil)
				if c.method == http.MethodConnect {
					r = httptest.NewRequest(c.method, "origin.example:80", nil)
				}
				answer, begun := httptest.NewRecorder(), time.Now()
				h.ServeHTTP(answer, r)
				if took := time.Since(begun); took < c.want || took > c.want+c.want/4 || answer.Code < 500 {
					t.Errorf("%d after %v, want an error after %v: %s", answer.Code, took, c.want, answer.Body)
				}
				if f := h.FailingOrigins(); len(f) != 1 {
					t.Errorf("FailingOrigins() = %+v", f)
				}
			})
		})
	}
}

// An origin that accepts a request and sends no header leaves time for the next origin of the site
// to answer.
func TestSilentOriginIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(_ context.Context, _, addr string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				r, err := http.ReadRequest(bufio.NewReader(there))
				if err != nil {
					return
				}
				if addr == "works.example:80" {
					fmt.Fprintf(there, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				} else {
					io.Copy(io.Discard, there)
				}
				r.Body.Close()
			}()
			return here, nil
		}
		site := Site{Name: "s", Hosts: []string{"s.example"}, FirstByteTimeout: 9 * time.Second}
		for _, o := range []string{"http://silent.example", "http://works.example"} {
			u, _ := url.Parse(o)
			site.Origins = append(site.Origins, u)
		}
		h, err := New(Config{Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}, Dial: dial, Settings: Settings{Sites: []Site{site}, FirstByteTimeout: 9 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		answer, begun := httptest.NewRecorder(), time.Now()
		h.ServeHTTP(answer, httptest.NewRequest("GET", "http://s.example/x", nil))
		if took := time.Since(begun); answer.Code != 200 || answer.Body.String() != "ok" || took < 9*time.Second || took > 10*time.Second {
			t.Errorf("%d after %v, want that of the second origin after 9s: %s", answer.Code, took, answer.Body)
		}
	})
}

// An upload that an origin does not read is abandoned, also if other requests share the connection,
// so that no write on it blocks for ever.
func TestStuckUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Body.Read(make([]byte, 1)) // and then the window is full
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})
		h, err := New(Config{Config: engine.Config{Name: "a", Tuning: engine.Tuning{SendTimeout: 8 * time.Second}}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}, OriginTransport: took, Settings: Settings{Origin: &url.URL{Scheme: "http", Host: "origin.example"}}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		answer, begun := httptest.NewRecorder(), time.Now()
		h.ServeHTTP(answer, httptest.NewRequest("POST", "/x", strings.NewReader("a body")))
		if took := time.Since(begun); took != 8*time.Second || answer.Code != http.StatusGatewayTimeout {
			t.Errorf("%d after %v, want %d after 8s", answer.Code, took, http.StatusGatewayTimeout)
		}
		if f := h.FailingOrigins(); len(f) != 1 {
			t.Errorf("FailingOrigins() = %+v", f)
		}
	})
}

func unreachable(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
}
