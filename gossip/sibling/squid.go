package sibling

import (
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// translate writes what a Squid before release 6 says of its own part in an
// answer, in X-Cache, as a member of Cache-Status. Fields that describe this
// exchange only are not for the cache to keep.
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
