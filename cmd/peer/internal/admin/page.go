package admin

import (
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// page is the status page, in one file. It fetches the JSON of this listener.
//
//go:embed page.html
var page string

// description is the OpenAPI description of the listener.
//
//go:embed openapi.json
var description []byte

// policy allows the page its own script and style, and requests to its own server only.
var policy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; script-src " +
	hashOf("<script>", "</script>") + "; style-src " + hashOf("<style>", "</style>")

func hashOf(open, end string) string {
	_, rest, _ := strings.Cut(page, open)
	text, _, _ := strings.Cut(rest, end)
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// servePage adds the status page, and most of the paths that it fetches.
func servePage(mux *http.ServeMux, s Source) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			plain(w, http.StatusOK, "/healthz /readyz /metrics /status /status.json /history.json /events.json "+
				"/misses.json /cluster.json /why?url= /digest?peer= /openapi.json /debug/pprof/\n")
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		write(w, http.StatusOK, "text/html; charset=utf-8", []byte(page))
	})
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, "application/json", description)
	})
	mux.HandleFunc("GET /history.json", func(w http.ResponseWriter, r *http.Request) {
		since, err := sinceOf(r.URL.Query())
		if err != nil {
			plain(w, http.StatusBadRequest, err.Error()+"\n")
			return
		}
		all := s.History()
		first := slices.IndexFunc(all, func(h Sample) bool { return h.At.After(since) })
		if first < 0 {
			first = len(all) - 1
		}
		writeJSON(w, all[first:])
	})
	mux.HandleFunc("GET /events.json", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Events()) })
	mux.HandleFunc("GET /misses.json", func(w http.ResponseWriter, r *http.Request) {
		q, err := pastRequest(r.URL.Query())
		if err != nil {
			plain(w, http.StatusBadRequest, err.Error()+"\n")
			return
		}
		writeJSON(w, s.Misses(r.Context(), q))
	})
	mux.HandleFunc("GET /cluster.json", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, s.Cluster(r.Context())) })
}
