package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/summarycache/summarycache/gossip/limitlog"
)

// An untrusted certificate of an origin is reported as such: to the client, in the log and in the
// status.
func TestUntrustedCertificate(t *testing.T) {
	var log bytes.Buffer
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer server.Close()
	base, _ := url.Parse(server.URL)
	h, err := New(Config{Settings: Settings{Origin: base}, Config: engine.Config{Name: "a", Logger: slog.New(slog.NewTextHandler(&log, nil))}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for range 3 {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest("GET", "/x", nil))
		if answer.Code != http.StatusBadGateway || !strings.Contains(answer.Header().Get("Cache-Status"), "detail=origin-certificate") ||
			!strings.Contains(answer.Body.String(), "certificate of the origin of "+base.Host+" is not trusted") {
			t.Errorf("%d, %v, %s", answer.Code, answer.Header(), answer.Body)
		}
	}
	if n := strings.Count(log.String(), "an origin does not answer"); n != 1 || !strings.Contains(log.String(), "x509") {
		t.Errorf("the log has %d lines:\n%s", n, &log)
	}
	f := h.FailingOrigins()
	if len(f) != 1 || f[0].Host != base.Host || f[0].Requests != 3 || !strings.Contains(f[0].Reason, "its certificate is not trusted: x509") {
		t.Errorf("FailingOrigins() = %+v", f)
	}
}

// failing is a transport with a given error.
type failing struct{ err error }

func (s *failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
}

// A failing origin is logged once a minute, and when it answers again. Failures that the client
// caused do not count.
func TestOriginsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &failing{}
		o := &origins{RoundTripper: s, failings: &failings{log: slog.New(slog.NewTextHandler(&log, nil))}}
		ask := func(ctx context.Context, host string) {
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+host+"/", nil)
			o.RoundTrip(r)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		s.err = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		ask(gone, "a")
		if len(o.list()) != 0 || log.Len() != 0 {
			t.Errorf("faults of clients count: %+v\n%s", o.list(), &log)
		}
		s.err = &net.DNSError{Err: "no such host", Name: "a"}
		for range 600 {
			ask(t.Context(), "a")
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "an origin does not answer"); n != 10 {
			t.Errorf("%d lines in ten minutes, want 10:\n%s", n, &log)
		}
		if f := o.list(); len(f) != 1 || f[0].Requests != 600 || !strings.HasPrefix(f[0].Reason, "its name cannot be resolved") {
			t.Errorf("%+v", f)
		}
		s.err = nil
		ask(t.Context(), "a")
		if len(o.list()) != 0 || !strings.Contains(log.String(), "an origin answers again") {
			t.Errorf("after an answer: %+v\n%s", o.list(), &log)
		}
	})
}

// Clients of a forward proxy can fill neither the log nor the memory with names of hosts that do
// not exist. Failing origins without recent requests are forgotten.
func TestOriginsOfAForwardProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := &origins{RoundTripper: &failing{err: errors.New("no")}, failings: &failings{log: slog.New(limitlog.New(slog.NewTextHandler(&log, nil))), forget: true}}
		for i := range 1000 {
			r, _ := http.NewRequest("GET", fmt.Sprintf("http://host%d/", i), nil)
			o.RoundTrip(r)
			time.Sleep(time.Millisecond)
		}
		if n := strings.Count(log.String(), "an origin does not answer"); n == 0 || n > limitlog.OfMessage+1 {
			t.Errorf("%d lines of 1,000 origins", n)
		}
		if f := o.list(); len(f) != failingMost || f[0].Host != "host999" {
			t.Errorf("%d are kept, want %d", len(f), failingMost)
		}
		time.Sleep(failingFor)
		if f := o.list(); len(f) != 0 {
			t.Errorf("after a minute: %+v", f)
		}
	})
}

// A request whose connection ends before the header is sent again, with its body, if that does no
// harm, so that the restart of an origin causes no errors.
func TestBrokenBeforeTheHeader(t *testing.T) {
	for _, c := range []struct {
		method, body  string
		broken        int
		status, asked int
	}{
		{"GET", "", 1, 200, 2},
		{"HEAD", "", 1, 200, 2},
		{"GET", "", 2, 502, 2},
		{"POST", "", 1, 502, 1},
		{"POST", "x", 1, 502, 1},
		{"GET", "x", 1, 200, 2},
		{"PUT", strings.Repeat("x", 64<<10), 1, 200, 2},
		{"PUT", strings.Repeat("x", 64<<10+1), 1, 502, 1},
		{"DELETE", "x", 1, 200, 2},
		{"PATCH", "x", 1, 502, 1},
		{"PUT", "x", 2, 502, 2},
	} {
		t.Run(fmt.Sprintf("%s%d/%d", c.method, len(c.body), c.broken), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
					body, err := io.ReadAll(r.Body)
					if err != nil || string(body) != c.body || r.ContentLength != int64(len(c.body)) {
						t.Errorf("the origin got a body of %d bytes, error %v, with Content-Length %d; sent were %d bytes", len(body), err, r.ContentLength, len(c.body))
					}
					if asked++; asked <= c.broken {
						panic(http.ErrAbortHandler)
					}
				}, "a")
				defer w.close()
				if got := w.do("a", c.method, "/x", c.body).StatusCode; got != c.status || asked != c.asked {
					t.Errorf("status %d after %d requests, want %d after %d", got, asked, c.status, c.asked)
				}
			})
		})
	}
}
