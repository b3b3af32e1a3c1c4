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
	last, rest := lastLine(h["X-Cache"])
	result, name, ok := strings.Cut(last, " from ")
	if !ok {
		return
	}
	if rest == nil {
		delete(h, "X-Cache")
	} else {
		h["X-Cache"] = rest
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

// lastLine splits the last line off those of a field.
func lastLine(lines []string) (last string, rest []string) {
	if len(lines) == 0 {
		return "", nil
	}
	if n := len(lines) - 1; n > 0 {
		rest = lines[:n]
	}
	return lines[len(lines)-1], rest
}
