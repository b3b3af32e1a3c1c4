package cache

import (
	"net/http"
	"strings"
)

// hopByHop are the fields that end with a connection whether or not Connection
// names them (RFC 9110 section 7.6.1, RFC 9111 section 3.1).
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Transfer-Encoding", "Upgrade",
	"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Trailer"}

// RemoveHopByHop removes the fields of h that concern one connection.
func RemoveHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for line != "" {
			var name string
			if name, line = cutList(line); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// addVia appends our entry to the Via field (RFC 9110 section 7.6.3).
func addVia(h http.Header, major, minor int, name string) {
	version := "1.1"
	switch {
	case major == 1 && minor == 0:
		version = "1.0"
	case major == 2:
		version = "2.0"
	}
	old := h["Via"]
	h["Via"] = append(old[:len(old):len(old)], version+" "+name)
}

// Seen reports whether a request has already come through the cache of that
// name: its Via says so.
func Seen(h http.Header, name string) bool {
	for _, line := range h["Via"] {
		for line != "" {
			var hop string
			hop, line = cutList(line)
			if fields := strings.Fields(hop); len(fields) >= 2 && fields[1] == name {
				return true
			}
		}
	}
	return false
}

// safe reports whether a method is registered as safe (RFC 9110 section 9.2.1).
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "PROPFIND", "REPORT", "SEARCH", "QUERY", "PRI":
		return true
	}
	return false
}
