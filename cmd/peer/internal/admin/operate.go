package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const maxCommand = 64 << 10 // bytes of a command's body

// operate adds the paths for single objects, digests and commands.
func operate(mux *http.ServeMux, s Source, access func() Access) {
	mux.HandleFunc("GET /why", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		header, err := HeaderOf(q["header"])
		if err != nil {
			plain(w, http.StatusBadRequest, "header "+err.Error()+"\n")
			return
		}
		in := WhyRequest{Method: q.Get("method"), URL: q.Get("url"), Header: header}
		within(w, s, http.StatusBadRequest, func() (any, error) {
			e, err := s.Why(in)
			if err == nil {
				e.Others = s.Holders(r.Context(), WhyRequest{Method: in.Method, URL: e.URL, Header: in.Header})
			}
			return e, err
		})
	})
	mux.HandleFunc("GET /digest", func(w http.ResponseWriter, r *http.Request) {
		within(w, s, http.StatusInternalServerError, func() (any, error) { return s.Digest(r.URL.Query().Get("peer")) })
	})
	command(mux, "POST /purge", s.Purge)
	command(mux, "POST /reload", func(_ context.Context, in ReloadRequest) (ReloadReport, error) { return s.Reload(in) })
	command(mux, "POST /replace", s.Replace)
	session := func(context.Context, SessionRequest) (Session, error) { return Session{access().Session}, nil }
	command(mux, "POST /session", session)
}

// command adds a path that reads a command, and answers with its report.
func command[In, Out any](mux *http.ServeMux, path string, do func(context.Context, In) (Out, error)) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		var given In
		in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommand))
		in.DisallowUnknownFields()
		if err := in.Decode(&given); err != nil {
			plain(w, http.StatusBadRequest, "the command cannot be read: "+err.Error()+"\n")
			return
		}
		report, err := do(r.Context(), given)
		respond(w, http.StatusBadRequest, report, err)
	})
}

// A SessionRequest asks for a [Session].
type SessionRequest struct{}

// A Session is what a browser needs for commands, for as long as the peer's process lives.
type Session struct {
	Token string `json:"token"`
}

// HeaderOf parses the lines of a header, NAME: VALUE.
func HeaderOf(lines []string) (http.Header, error) {
	header := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("%q is not a field, such as 'Accept-Encoding: gzip'", line)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
}

// respond writes a value, as JSON unless it is bytes, or an error with its status.
func respond(w http.ResponseWriter, failure int, v any, err error) {
	body, raw := v.([]byte)
	kind := "application/octet-stream"
	if err == nil && !raw {
		kind = "application/json"
		body, err = json.MarshalIndent(v, "", "  ")
		body = append(body, '\n')
	}
	switch {
	case errors.Is(err, ErrNoDigest):
		plain(w, http.StatusNotFound, err.Error()+"\n")
	case err != nil:
		plain(w, failure, err.Error()+"\n")
	default:
		write(w, http.StatusOK, kind, body)
	}
}

func writeJSON(w http.ResponseWriter, v any) { respond(w, http.StatusInternalServerError, v, nil) }
