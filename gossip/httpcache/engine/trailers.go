package engine

import (
	"io"
	"maps"
	"net/http"
	"slices"

	"golang.org/x/net/http/httpguts"
)

// Trailers are passed on in both directions, whether a field named them before the body or not:
// few senders by HTTP/2 do that, and gRPC never does. They are never stored.

// foresee keeps the names of the trailers that a response's header named. Reading the body adds
// to them.
func (a *answer) foresee() {
	if a.trailer != nil {
		a.announced = slices.Collect(maps.Keys(*a.trailer))
	}
}

// relayTrailer sends the trailers of an answer whose body was sent.
func (a *answer) relayTrailer(w http.ResponseWriter) {
	if a.trailer == nil || len(*a.trailer) == 0 {
		return
	}
	http.NewResponseController(w).Flush() // an empty body must not be sent with a length; an error shows to the server, too
	h := w.Header()
	for name, lines := range trailing(*a.trailer) {
		if !slices.Contains(a.announced, name) {
			name = http.TrailerPrefix + name
		}
		h[name] = lines
	}
}

// trailing returns the fields that may be sent as trailers (RFC 9110 section 6.5.1).
func trailing(t http.Header) http.Header {
	fit := make(http.Header, len(t))
	for name, lines := range t {
		if httpguts.ValidHeaderFieldName(name) && httpguts.ValidTrailerHeader(name) && !slices.ContainsFunc(lines, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			fit[name] = lines
		}
	}
	return fit
}

// A trailed body is one of a request with trailers. It sets them at its end, where the
// transport looks for them.
type trailed struct {
	io.ReadCloser
	from, to http.Header
}

func (t *trailed) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err == io.EOF {
		maps.Copy(t.to, trailing(t.from))
	}
	return n, err
}
