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
