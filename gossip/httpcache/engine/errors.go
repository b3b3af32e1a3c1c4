package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// originError is the error of a request that the origin didn't answer.
type originError struct {
	host string
	err  error
}

func (e *originError) Error() string { return "origin " + e.host + ": " + e.err.Error() }
func (e *originError) Unwrap() error { return e.err }

// timeout is the error of an event that did not happen in time.
type timeout string

func (e timeout) Error() string { return string(e) }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

const (
	errSend         = timeout("cache: nothing of the request's body was taken within the time to send")
	errBetweenBytes = timeout("cache: no byte within the time between bytes")
)

// Broken returns why a response is no answer to r that can be passed on, whichever transport took it for one; nil = it is
// one. Its status must be final, or that of an upgrade that r asks for (RFC 9110 section 15). The names of its fields must
// be tokens: others are dropped in silence when they are sent or stored, as is "Cache-Control :" (RFC 9112 section 5.1).
func Broken(r *http.Request, resp *http.Response) error {
	status := resp.StatusCode
	upgraded := status == http.StatusSwitchingProtocols && r.Header["Upgrade"] != nil
	if (status < http.StatusOK || status > 599) && !upgraded {
		return fmt.Errorf("the status %03d is not that of an answer to this request", status)
	}
	for name := range resp.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("the name of a field, %.40q, is not a token", name)
		}
	}
	return nil
}

// failure describes an error on the way to the origin to the client: a status, a token for
// Cache-Status, and a sentence that names the hop but no internals.
type failure struct {
	status int
	detail string
	text   string
}

func (c *Cache) failure(err error) failure {
	var (
		origin *originError
		dns    *net.DNSError
		op     *net.OpError
		nerr   net.Error
		client *clientError
		cert   *tls.CertificateVerificationError
	)
	host := "the origin"
	if errors.As(err, &origin) {
		host = "the origin of " + origin.host
	}
	switch {
	case errors.As(err, &client):
		return client.told
	case errors.As(err, &cert):
		return failure{http.StatusBadGateway, "origin-certificate", "the certificate of " + host + " is not trusted"}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &nerr) && nerr.Timeout():
		return failure{http.StatusGatewayTimeout, "origin-timeout", host + " did not answer in time"}
	case errors.Is(err, errStopped):
		return failure{http.StatusServiceUnavailable, "closing", "this cache is closing"}
	case errors.As(err, &dns):
		return failure{http.StatusBadGateway, "origin-unknown", "the name of " + host + " cannot be resolved"}
	case errors.As(err, &op) && op.Op == "dial":
		return failure{http.StatusBadGateway, "origin-unreachable", host + " cannot be reached"}
	}
	return failure{http.StatusBadGateway, "origin-failed", host + " broke off the connection or sent an invalid answer"}
}

// Failed answers a request to the origin of a host that ended with err.
func (c *Cache) Failed(w http.ResponseWriter, r *http.Request, host string, err error) Result {
	return c.unanswered(w, r, rfc9111.Status{}, &originError{host, err})
}

// unanswered refuses a request that no source has answered, for that reason.
func (c *Cache) unanswered(w http.ResponseWriter, r *http.Request, st rfc9111.Status, err error) Result {
	fail := c.failure(err)
	st.Detail, st.Stored = fail.detail, false
	res := c.refuse(w, r, fail.status, st, fail.text)
	res.Outcome, res.Err, res.Said = GatewayError, err, st
	if IsClients(err) {
		res.Outcome = ClientError
	}
	return res
}

// Cause returns the error of the transport, or of the request's body, that an error of a [Result] is about.
func Cause(err error) error {
	if origin := (*originError)(nil); errors.As(err, &origin) {
		err = origin.err
	}
	if client := (*clientError)(nil); errors.As(err, &client) {
		err = client.err
	}
	return err
}

// A Refusable answer is an [http.ResponseWriter] whose method Refused is called instead of
// sending a refusal.
type Refusable interface{ Refused() }

// Refuse answers with an error of this cache: a status, a token for Cache-Status, and a sentence for
// people. The result has the given outcome.
func (c *Cache) Refuse(w http.ResponseWriter, r *http.Request, outcome Outcome, code int, detail, text string) Result {
	res := c.refuse(w, r, code, rfc9111.Status{Detail: detail}, text)
	res.Outcome = outcome
	return res
}

func (c *Cache) refuse(w http.ResponseWriter, r *http.Request, code int, st rfc9111.Status, text string) Result {
	if a, ok := w.(Refusable); ok {
		a.Refused()
		return Result{}
	}
	h := w.Header()
	body := c.cfg.Name + ": " + strings.TrimSuffix(text, ".") + ".\n"
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	c.AddStatus(h, st)
	h["Via"] = []string{"1.1 " + c.cfg.Name}
	late := st.Detail == "client-deadline" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
	if late { // gRPC's clients take any error of HTTP for one of the server
		h.Set("Content-Type", "application/grpc")
		h.Set("Grpc-Status", "4") // DEADLINE_EXCEEDED
		code = http.StatusOK
	}
	w.WriteHeader(code)
	n := 0
	if r.Method != http.MethodHead && !late {
		n, _ = w.Write([]byte(body))
	}
	return Result{Status: code, Bytes: int64(n), Said: st}
}
