package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// Failing is an origin whose last request got no answer.
type Failing struct {
	Host     string    `json:"host"`
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since"`    // when the first of the unanswered requests in a row failed
	Last     time.Time `json:"last"`     // when the last of them failed
	Requests int       `json:"requests"` // their number

	logged time.Time // when the log last named it; zero = never
}

const (
	failingMost = 64          // failing origins that are remembered: a forward proxy may be sent to any
	failingFor  = time.Minute // a forward proxy forgets an origin after so long without a request

	restShortest = time.Second      // pause for an origin after a failure, doubling with each
	restLongest  = 30 * time.Second // up to this
)

// origins is a transport to origins that keeps track of those that fail.
type origins struct {
	http.RoundTripper
	*failings
	clocks *clocks          // nil = they are not compared
	own    *http1.Transport // below it, unless [Config.OriginTransport] is
}

// failings are the origins that fail. Others of their site are asked before them for a while. The operator sees them in
// the status and in the log, where each is named at most once a minute.
type failings struct {
	log    *slog.Logger
	forget bool // origins without requests for failingFor

	mu      sync.Mutex
	failing map[string]*Failing // by host
}

// CloseIdleConnections closes those that carry no request.
func (o *origins) CloseIdleConnections() { o.own.CloseIdleConnections() }

// RoundTrip implements [http.RoundTripper].
func (o *origins) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	resp, err := o.RoundTripper.RoundTrip(r)
	if err != nil {
		err = engine.Blame(r, err)
	} else if err = engine.Broken(r, resp); err != nil {
		resp.Body.Close()
		resp = nil
	}
	if err == nil {
		o.answered(r.URL.Host)
		o.clocks.look(r.URL.Host, resp.Header, sent)
	} else if cause := fault(r, err); cause != nil {
		o.failed(r.URL.Host, cause)
	}
	return resp, err
}

// fault returns the error for which the origin is responsible. It is nil if the client is (see
// [engine.Blame]), or if the request was cancelled because nobody waits for the answer any more.
func fault(r *http.Request, err error) error {
	if engine.IsClients(err) {
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
		o.log.Info("an origin answers again", "origin", host, "failed_for",
			time.Since(f.Since).Truncate(time.Millisecond), "requests", f.Requests)
	}
}

func (o *failings) failed(host string, err error) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failing[host]
	if f == nil {
		if o.prune(now); len(o.failing) >= failingMost {
			oldest := slices.MinFunc(slices.Collect(maps.Values(o.failing)), func(a, b *Failing) int { return a.Last.Compare(b.Last) })
			delete(o.failing, oldest.Host)
		}
		if o.failing == nil {
			o.failing = make(map[string]*Failing)
		}
		f = &Failing{Host: host, Since: now}
		o.failing[host] = f
	}
	f.Requests++
	f.Last, f.Reason = now, reason(err)
	if now.Sub(f.logged) >= time.Minute {
		f.logged = now
		o.log.Warn("an origin does not answer", "origin", host, "reason", f.Reason, "requests", f.Requests,
			"since", f.Since)
	}
}

// rests reports whether an origin has failed lately.
func (o *failings) rests(host string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failing[host]
	return f != nil && now.Before(f.Last.Add(min(restShortest<<min(f.Requests-1, 10), restLongest)))
}

// only forgets all origins that v does not have, and those of a forward proxy once there is no request to them.
func (o *failings) only(v *appliedSettings) {
	own := make(map[string]bool)
	for _, u := range v.sites {
		for _, b := range u.backends {
			own[b.url.Host] = true
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget = v.sites == nil
	maps.DeleteFunc(o.failing, func(host string, _ *Failing) bool { return v.sites != nil && !own[host] })
}

// prune forgets origins without recent requests. The caller holds o.mu.
func (o *failings) prune(now time.Time) {
	maps.DeleteFunc(o.failing, func(_ string, f *Failing) bool { return o.forget && now.Sub(f.Last) >= failingFor })
}

// list returns the failing origins, the one that failed last first.
func (o *failings) list() []Failing {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.prune(time.Now())
	out := make([]Failing, 0, len(o.failing))
	for _, f := range o.failing {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Failing) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Host, b.Host))
	})
	return out
}

// reason describes an error to the operator, with its technical details.
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

// FailingOrigins returns the origins whose last request got no answer, the one that failed last
// first. A forward proxy leaves out origins without a request in the last minute.
func (h *Handler) FailingOrigins() []Failing { return h.failing.list() }
