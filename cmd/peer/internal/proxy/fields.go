package proxy

import (
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// wantTrailer has the server of HTTP/1 set the trailers of a request in a place where copies of r
// find them, whether the header names them or not. The server of HTTP/2 drops those that it does
// not name.
func wantTrailer(r *http.Request) {
	if r.Trailer == nil && len(r.TransferEncoding) > 0 {
		r.Trailer = make(http.Header)
	}
}

// passTE sets TE in h, the header without hop-by-hop fields of r as it is passed on, if the client
// takes trailers: they are passed on with the answer, and servers of gRPC ask for this field. The
// answer to a GET may be shared, without trailers.
func passTE(r *http.Request, h http.Header) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && httpguts.HeaderValuesContainsToken(r.Header["Te"], "trailers") {
		h["Te"] = []string{"trailers"}
	}
}

// spaced refuses a header by HTTP/2 with space around a value: origins refuse such a request as
// malformed (RFC 9113 section 8.2.1). In HTTP/1 that space is no part of the value.
func spaced(h http.Header) *refusal {
	for _, lines := range h {
		for _, v := range lines {
			if n := len(v); n > 0 && (v[0] == ' ' || v[0] == '\t' || v[n-1] == ' ' || v[n-1] == '\t') {
				return &refusal{http.StatusBadRequest, "bad-field", "a field has space around its value, which HTTP/2 does not allow"}
			}
		}
	}
	return nil
}
