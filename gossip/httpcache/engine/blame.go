package engine

import (
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/gossip/http1"
)

// A clientError is the error of a request to an origin that failed for what its client sent, or
// did not send. It doesn't count against the origin.
type clientError struct {
	err  error
	told failure // to the client
}

func (e *clientError) Error() string { return e.err.Error() }
func (e *clientError) Unwrap() error { return e.err }

// IsClients reports whether an error is one that [Blame] returned for a client.
func IsClients(err error) bool {
	var client *clientError
	return errors.As(err, &client)
}

// Blame returns err, with which r to an origin failed, as the client's error if it is the
// client's: if the request's body could not be read, if no such request can be sent to any
// origin, if its header is longer than this origin accepts, if the origin says that it is
// malformed, or if the client's own deadline (grpc-timeout) has passed at the origin. It is called for
// requests that failed only.
func Blame(r *http.Request, err error) error {
	if u, ok := r.Body.(*upload); ok && u.failed.Load() != nil {
		return u.failed.Load()
	}
	if IsClients(err) {
		return err
	}
	text := err.Error() // net/http exports none of these errors, and wraps some as text only
	switch {
	case errors.Is(err, http1.ErrInvalid):
		return &clientError{err, failure{http.StatusBadRequest, "bad-request", "the request is not valid"}}
	case strings.HasSuffix(text, "request header list larger than peer's advertised limit"):
		return &clientError{err, failure{http.StatusRequestHeaderFieldsTooLarge, "header-too-long", "the header of the request is longer than the origin accepts"}}
	case strings.Contains(text, "; PROTOCOL_ERROR; received from peer"):
		return &clientError{err, failure{http.StatusBadRequest, "bad-request", "the origin says that the request is malformed"}}
	case strings.Contains(text, "; CANCEL; received from peer") && r.Header["Grpc-Timeout"] != nil:
		return &clientError{err, failure{http.StatusGatewayTimeout, "client-deadline", "the time that the request allows has passed at the origin"}}
	}
	return err
}

// bodyError is the error of a request whose body could not be read to its end.
func bodyError(err error) *clientError {
	var nerr net.Error
	if errors.As(err, &nerr) && nerr.Timeout() {
		return &clientError{err, failure{http.StatusRequestTimeout, "request-timeout", "the body of the request did not come in time"}}
	}
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return &clientError{err, failure{http.StatusRequestEntityTooLarge, "body-too-large", "the body of the request is too long"}}
	}
	return &clientError{err, failure{http.StatusBadRequest, "bad-request", "the request's body is broken"}}
}
