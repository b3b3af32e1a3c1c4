package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

const maxOrder = 64 << 10 // bytes of an order's body

// operate adds what answers questions about single objects and takes orders.
func operate(mux *http.ServeMux, s Source) {
	mux.HandleFunc("GET /why", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		in := Inquiry{Method: q.Get("method"), URL: q.Get("url"), Header: http.Header{}}
		for _, line := range q["header"] {
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				plain(w, http.StatusBadRequest, "header "+line+" is not NAME: VALUE\n")
				return
			}
			in.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
		within(w, s, func() func(http.ResponseWriter) {
			e, err := s.Why(in)
			if err == nil {
				e.Others = s.Holders(r.Context(), Inquiry{Method: in.Method, URL: e.URL, Header: in.Header})
			}
			return func(w http.ResponseWriter) {
				if err != nil {
					plain(w, http.StatusBadRequest, err.Error()+"\n")
					return
				}
				writeJSON(w, e)
			}
		})
	})
	mux.HandleFunc("GET /digest", func(w http.ResponseWriter, r *http.Request) {
		peer := r.URL.Query().Get("peer")
		within(w, s, func() func(http.ResponseWriter) {
			b, err := s.Digest(peer)
			return func(w http.ResponseWriter) { writeDigest(w, b, err) }
		})
	})
	mux.HandleFunc("POST /purge", func(w http.ResponseWriter, r *http.Request) {
		var order PurgeOrder
		in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
		in.DisallowUnknownFields()
		if err := in.Decode(&order); err != nil {
			plain(w, http.StatusBadRequest, "the order cannot be read: "+err.Error()+"\n")
			return
		}
		report, err := s.Purge(r.Context(), order)
		if err != nil {
			plain(w, http.StatusBadRequest, err.Error()+"\n")
			return
		}
		writeJSON(w, report)
	})
}

func writeDigest(w http.ResponseWriter, b []byte, err error) {
	switch {
	case errors.Is(err, ErrNoDigest):
		plain(w, http.StatusNotFound, err.Error()+"\n")
	case err != nil:
		plain(w, http.StatusInternalServerError, err.Error()+"\n")
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.Write(b)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(append(body, '\n'))
}
