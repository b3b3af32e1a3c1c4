package proxy

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/http1"
)

// account returns a transport that keeps track of origins that fail.
func (h *Handler) account(t *http1.Transport) *origins {
	o := &origins{own: t, failings: &h.failing, clocks: &h.clocks}
	o.RoundTripper = h.cfg.Tracing.Transport("fetch from origin", cmp.Or[http.RoundTripper](h.cfg.OriginTransport, t))
	return o
}

// newTransport returns a transport to origins with these deadlines.
func (h *Handler) newTransport(v *appliedSettings, connect, firstByte time.Duration, tls *tls.Config) *http1.Transport {
	return &http1.Transport{
		Dial: h.cfg.Dial, Addresses: h.cfg.Addresses, TLS: tls, HTTP2: true,
		ConnectTimeout: connect, HeaderTimeout: firstByte, MaxIdle: cmp.Or(h.cfg.MaxIdle, 1024), MaxAge: v.ConnectionAge,
		Surplus: func(addr string) {
			h.cfg.Logger.Warn("an origin sends more than its answers: no connection to it is kept for a minute",
				"origin", addr)
		},
	}
}
