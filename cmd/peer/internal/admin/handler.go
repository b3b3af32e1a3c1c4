package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves /healthz, /readyz, /metrics, /status, /status.json and
// /debug/pprof/. status is called for each request and must be quick; durations
// may be nil.
func Handler(status func() Status, durations *Durations) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s := status(); !s.Ready {
			plain(w, http.StatusServiceUnavailable, s.State+"\n")
			return
		}
		plain(w, http.StatusOK, "ready\n")
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		body, err := json.MarshalIndent(status(), "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.Write(append(body, '\n'))
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		var b strings.Builder
		s := status()
		WriteStatus(&b, s)
		b.WriteString("\n")
		WriteMembers(&b, s)
		plain(w, http.StatusOK, b.String())
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "/healthz /readyz /metrics /status /status.json /debug/pprof/\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(status, durations), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	io.WriteString(w, text)
}

const maxStatus = 64 << 20 // bytes of a status that a client takes

// Fetch asks the peer whose admin listener is at addr, host:port, for its status.
func Fetch(ctx context.Context, addr string) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/status.json", nil)
	if err != nil {
		return s, fmt.Errorf("no peer can be at %q", addr)
	}
	transport := &http.Transport{DisableKeepAlives: true} // without a proxy of the environment: it may be this very peer
	answer, err := transport.RoundTrip(r)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return s, fmt.Errorf("no peer answers at %s: %w", addr, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" {
		return s, fmt.Errorf("what answers at %s is not a peer's admin listener (%s for /status.json)", addr, answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxStatus)).Decode(&s); err != nil {
		return s, fmt.Errorf("the status from %s cannot be read: %w", addr, err)
	}
	return s, nil
}
