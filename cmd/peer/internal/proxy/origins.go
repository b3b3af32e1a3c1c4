package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
)

// Failing is an origin whose last request got no answer.
type Failing struct {
	Host     string    `json:"host"`
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since"`    // the first of the requests in a row without an answer
	Last     time.Time `json:"last"`     // the last of them
	Requests int       `json:"requests"` // their number
}

const (
	failingMost  = 64          // failing origins that are remembered; a forward proxy may be sent to any
	failingFor   = time.Minute // a forward proxy forgets one that nobody asked for so long
	failingLines = 20          // log lines a minute, of all origins
)

// origins is a transport to origins that notes which of them fail.
type origins struct {
	http.RoundTripper
	*failings
}

// failings are the origins that fail, for the operator: in the log, each at most once a
// minute, and in the status.
type failings struct {
	log    *slog.Logger
	forget bool // what nobody asks for any more

	mu      sync.Mutex
	failing map[string]*origin
	lines   int       // logged
	minute  time.Time // since when
}

type origin struct {
	Failing
	logged time.Time // when the log was told last; zero = not yet
}

var errSwitched = errors.New("101 Switching Protocols, which was not asked for")

// RoundTrip implements [http.RoundTripper].
func (o *origins) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.RoundTripper.RoundTrip(r)
	if err != nil && brokeOff(r, err) {
		resp, err = o.RoundTripper.RoundTrip(r)
	}
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols && r.Header["Upgrade"] == nil {
		resp.Body.Close()
		resp, err = nil, errSwitched
	}
	if err == nil {
		o.answered(r.URL.Host)
	} else if cause := fault(r, err); cause != nil {
		o.failed(r.URL.Host, cause)
	}
	return resp, err
}

// brokeOff reports whether the connection ended before an answer to a request that may be
// sent twice: an origin that was restarted just then, or had enough of the connection.
func brokeOff(r *http.Request, err error) bool {
	safe := (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions) && (r.Body == nil || r.Body == http.NoBody)
	return safe && r.Context().Err() == nil &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// fault returns the error that an origin is to be blamed for, nil if a request failed
// for what the client did, or because nobody wants its answer any more.
func fault(r *http.Request, err error) error {
	if cache.RequestBodyFailed(r) {
		return nil
	}
	cause := context.Cause(r.Context())
	var late net.Error
	switch {
	case cause == nil:
		return err
	case errors.As(cause, &late) && late.Timeout():
		return cause // the origin did not answer in time
	}
	return nil
}

func (o *failings) answered(host string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failing[host]
	if f == nil {
		return
	}
	delete(o.failing, host)
	if !f.logged.IsZero() {
		o.log.Info("an origin answers again", "origin", host, "failed_for", time.Since(f.Since).Truncate(time.Millisecond), "requests", f.Requests)
	}
}

func (o *failings) failed(host string, err error) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failing[host]
	if f == nil {
		o.makeRoom(now)
		f = &origin{Failing: Failing{Host: host, Since: now}}
		if o.failing == nil {
			o.failing = make(map[string]*origin)
		}
		o.failing[host] = f
	}
	f.Requests++
	f.Last, f.Reason = now, reason(err)
	if now.Sub(o.minute) >= time.Minute {
		o.minute, o.lines = now, 0
	}
	if now.Sub(f.logged) >= time.Minute && o.lines < failingLines {
		o.lines++
		f.logged = now
		o.log.Warn("an origin does not answer", "origin", host, "reason", f.Reason, "requests", f.Requests, "since", f.Since)
	}
}

// makeRoom drops origins that nobody requested lately and, if there are still too many,
// the one whose last failure is the oldest. o.mu is held.
func (o *failings) makeRoom(now time.Time) {
	var oldest *origin
	for host, f := range o.failing {
		if o.forget && now.Sub(f.Last) >= failingFor {
			delete(o.failing, host)
		} else if oldest == nil || f.Last.Before(oldest.Last) {
			oldest = f
		}
	}
	if len(o.failing) >= failingMost {
		delete(o.failing, oldest.Host)
	}
}

// list returns those that fail, the latest first.
func (o *failings) list() []Failing {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]Failing, 0, len(o.failing))
	for _, f := range o.failing {
		if !o.forget || now.Sub(f.Last) < failingFor {
			out = append(out, f.Failing)
		}
	}
	slices.SortFunc(out, func(a, b Failing) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Host, b.Host))
	})
	return out
}

// reason words an error for the operator, internals included.
func reason(err error) string {
	var (
		certificate *tls.CertificateVerificationError
		dns         *net.DNSError
		op          *net.OpError
		nerr        net.Error
	)
	switch {
	case errors.As(err, &certificate):
		return "its certificate is not trusted: " + certificate.Err.Error()
	case errors.As(err, &dns):
		return "its name cannot be resolved: " + dns.Error()
	case errors.As(err, &op) && op.Op == "dial":
		return "no connection: " + op.Err.Error()
	case errors.As(err, &nerr) && nerr.Timeout():
		return "no answer in time: " + err.Error()
	}
	return err.Error()
}

// FailingOrigins returns the origins whose last request got no answer, the latest
// first. A forward proxy forgets those that nobody asked for in the last minute.
func (h *Handler) FailingOrigins() []Failing { return h.failing.list() }
