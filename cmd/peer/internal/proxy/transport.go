package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/planted"
)

// originTransport returns a transport to origins with these deadlines. It also gives up an origin that reads nothing
// of a request for too long.
func (h *Handler) originTransport(connect, firstByte time.Duration, tls *tls.Config) *origins {
	return h.account(h.newTransport(connect, firstByte, tls))
}

// clearTransport returns one that speaks HTTP/2 without TLS.
func (h *Handler) clearTransport(connect, firstByte time.Duration) *origins {
	t := h.newTransport(connect, firstByte, nil)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetUnencryptedHTTP2(true)
	o := h.account(t)
	o.clear = true
	return o
}

// account returns a transport that keeps track of origins that fail.
func (h *Handler) account(t *http.Transport) *origins {
	o := &origins{own: t, failings: &h.failing, RoundTripper: t}
	if h.cfg.OriginTransport != nil {
		o.RoundTripper = h.cfg.OriginTransport
	}
	o.RoundTripper = h.cfg.Tracing.Transport("fetch from origin", o.RoundTripper)
	return o
}

func (h *Handler) newTransport(connect, firstByte time.Duration, tls *tls.Config) *http.Transport {
	if planted.Fault == "first-byte" {
		firstByte = 0
	}
	idle := cmp.Or(h.cfg.MaxIdle, 1024)
	return &http.Transport{
		TLSClientConfig: tls,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, connect)
			defer cancel()
			to, err := h.cfg.Dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return conn.Patient(to, time.Duration(h.sendTimeout.Load())), nil
		},
		DisableCompression: true, // bodies are passed on as the origin sends them
		ForceAttemptHTTP2:  true,
		// A connection is idle for net/http before its answer without a body has been passed on. If it
		// is then the oldest of too many it is closed, and the answer lost. The limit of one host does
		// not do that: it closes the newest.
		MaxIdleConnsPerHost:    max(1, min(64, idle/2)),
		MaxIdleConns:           idle,
		IdleConnTimeout:        60 * time.Second,
		TLSHandshakeTimeout:    connect,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  firstByte,
		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         8 << 10, // each waiting request has one; long bodies are not read through it
	}
}
