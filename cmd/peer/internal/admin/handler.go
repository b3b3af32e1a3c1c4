package admin

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves status and metrics, and accepts commands; "/" lists the paths. durations may be
// nil. Commands that a web page of another site has a browser send are refused.
func Handler(source Source, durations *Durations, access func() Access) http.Handler {
	mux := http.NewServeMux()
	status := source.Status
	operate(mux, source, access)
	servePage(mux, source)
	serveHealth(mux, source)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		s := status()
		if !s.Ready {
			plain(w, http.StatusServiceUnavailable, s.State+"\n")
			return
		}
		plain(w, http.StatusOK, fmt.Sprintf("ready\nversion %s, started %s\n%s", s.Version,
			s.Started.UTC().Format(time.RFC3339), s.Health.lines()))
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, status())
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		s := status()
		plain(w, http.StatusOK, StatusText(s)+"\n"+MembersText(s))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(status, durations), promhttp.HandlerOpts{}))
	for path, show := range map[string]http.HandlerFunc{"": pprof.Index, "cmdline": pprof.Cmdline,
		"profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
		mux.HandleFunc("GET /debug/pprof/"+path, func(w http.ResponseWriter, r *http.Request) {
			if !access().Profiles {
				http.NotFound(w, r)
				return
			}
			show(w, r)
		})
	}
	return guard(access, http.NewCrossOriginProtection().Handler(mux))
}

// saidBy marks the answers of this program.
const saidBy = "Summarycache-Admin"

func plain(w http.ResponseWriter, code int, text string) {
	write(w, code, "text/plain; charset=utf-8", []byte(text))
}

func write(w http.ResponseWriter, code int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	w.Write(body)
}
