package sibling

import (
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// translate replaces the last X-Cache of a Squid before release 6 by a member of Cache-Status,
// and removes the other field that describes this answer only and must not be stored.
func translate(h http.Header) {
	lines := h["X-Cache"]
	if len(lines) == 0 {
		return
	}
	rest := lines[:len(lines)-1]
	result, name, ok := strings.Cut(lines[len(rest)], " from ")
	if !ok {
		return
	}
	if h["X-Cache"] = rest; len(rest) == 0 {
		delete(h, "X-Cache")
	}
	delete(h, "X-Cache-Lookup")
	status := rfc9111.Status{Cache: name, Hit: result == "HIT"}
	if !status.Hit {
		status.Fwd = "miss"
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		status.Add(h)
	}
}
