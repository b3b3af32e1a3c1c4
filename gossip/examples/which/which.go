package main

import (
	"fmt"
	"net/http"

	"github.com/summarycache/summarycache/gossip"
)

// A Server answers which siblings have what, and is told what the cache beside it holds.
type Server struct {
	Node     *gossip.Node
	Identity func(key string) string // of a key of the cache; see nginxIdentity
}

const longestKey = 8 << 10 // bytes

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("url")
	if key == "" || len(key) > longestKey {
		http.Error(w, fmt.Sprintf("want ?url=KEY, the key of the cache, with %d bytes at most", longestKey),
			http.StatusBadRequest)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /which", "HEAD /which":
		found := s.Node.Candidates(nil, s.Identity(key))
		for _, c := range found {
			w.Header().Add("X-Sibling", c.Service)
		}
		if len(found) == 0 {
			http.Error(w, "no sibling has it", http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, found[0].Service)
	case "PUT /holds":
		s.Node.Holdings().Add(s.Identity(key))
		w.WriteHeader(http.StatusNoContent)
	case "DELETE /holds":
		s.Node.Holdings().Remove(s.Identity(key))
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "want GET /which, or PUT or DELETE /holds", http.StatusNotFound)
	}
}
