package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

// What an origin keeps waiting for ends at the deadline of that name, and not before.
func TestOriginDeadlines(t *testing.T) {
	silent := func(context.Context, string, string) (net.Conn, error) { // takes everything, says nothing
		here, there := net.Pipe()
		go io.Copy(io.Discard, there)
		return here, nil
	}
	for name, c := range map[string]struct {
		dial   dialFunc
		tune   func(*Config)
		method string
		want   time.Duration
	}{
		"connect":    {unreachable, func(c *Config) { c.ConnectTimeout = 7 * time.Second }, "GET", 7 * time.Second},
		"default":    {unreachable, nil, "GET", time.Minute},
		"CONNECT":    {unreachable, func(c *Config) { c.ConnectTimeout, c.Origin = 7*time.Second, nil }, "CONNECT", 7 * time.Second},
		"first byte": {silent, func(c *Config) { c.FirstByteTimeout = 9 * time.Second }, "GET", 9 * time.Second},
		"takes nothing": {func(context.Context, string, string) (net.Conn, error) { here, _ := net.Pipe(); return here, nil },
			func(c *Config) { c.SendTimeout = 8 * time.Second }, "GET", 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{Name: "a", Dial: c.dial, Store: store.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}}
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

func unreachable(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
}
