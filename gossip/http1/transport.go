package http1

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A Transport carries requests to servers. Set its fields before its first use; the zero value of each is usable. It is
// safe for concurrent use.
type Transport struct {
	// Dial makes connections, to addresses if Addresses is not nil, otherwise to names; nil = net.Dialer. One that it
	// makes for the scheme http may be encrypted already. Before a connection without a descriptor is used again it is
	// asked by Peek() (int, error) how many bytes have come, if it can be.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Addresses looks up a name; nil = Dial does. While there are requests for a host its name is looked up again every
	// 30 s, beside them. Connections go to all of its addresses in turn, and end after their request if theirs is
	// no longer among them.
	Addresses func(ctx context.Context, host string) ([]netip.Addr, error)

	TLS   *tls.Config // for https
	HTTP2 bool        // also speak HTTP/2 for https, if the server does
	Clear bool        // speak HTTP/2 for http, without asking (RFC 9113 section 3.3)

	ConnectTimeout time.Duration // for a connection, with looking up the name and TLS; 0 = 1 min
	HeaderTimeout  time.Duration // from the end of a request to the header of its answer; 0 = no limit

	// connections that are kept without a request, up to 64, and half of them, to one host; 0 = 128
	MaxIdle        int
	MaxAge         time.Duration // a connection that was made longer ago ends after its request; 0 = 5 min
	MaxHeaderBytes int           // of an answer, its interim answers included; 0 = 256 KiB

	// Surplus is called when a host has sent more than its answers, at most once a minute for each; nil = not at all.
	Surplus func(addr string)

	buffers sync.Pool // of *[bufferSize]byte
	pool    pool
}

// ToSiblings returns a Transport to siblings: HTTP/1.1, with up to 4096 idle connections. dial nil = net.Dialer.
func ToSiblings(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Transport {
	return &Transport{Dial: dial, ConnectTimeout: 5 * time.Second, MaxIdle: 4096} // lookups have given up long before
}

// ToOrigins returns a Transport to origins of any name, by HTTP/1.1 or HTTP/2. A connection may take 30 s.
func ToOrigins() *Transport {
	return &Transport{HTTP2: true, ConnectTimeout: 30 * time.Second, Addresses: Lookup}
}

// Lookup looks up a name as the system does, for [Transport.Addresses].
func Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

const (
	bufferSize    = 8 << 10 // of a request and the header of its answer; long bodies are not read through it
	idleTimeout   = time.Minute
	expectTimeout = time.Second // RFC 9110 section 10.1.1: a client must not wait without end
)

// ErrMalformed is wrapped by the error of an answer that is not exactly one message of RFC 9112. It was not used, and
// its connection is closed.
var ErrMalformed = errors.New("the answer is not a message of HTTP/1")

// ErrInvalid is the error of a request that cannot be sent to any server.
var ErrInvalid = errors.New("http1: invalid request")

// RoundTrip implements [http.RoundTripper]. It sends a request once more, on a new connection, if the first one ended
// before the first byte of its answer, its method is idempotent, and its body can be had again
// ([http.Request.GetBody]). The method does not matter if a server of HTTP/2 says that it has not begun the request;
// it is then sent by HTTP/1 at last. It calls Got1xxResponse of an [httptrace.ClientTrace] in the request's context. If
// ctx of the request ends, the error is its cause. The body of a 101 is an [io.ReadWriteCloser].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	h, err := t.hostOf(r)
	if err == nil && r.Context().Err() != nil {
		t.done(h)
		err = context.Cause(r.Context())
	}
	if err != nil {
		closeBody(r)
		return nil, err
	}
	defer t.done(h)
	only1 := r.Header["Upgrade"] != nil  // HTTP/2 has no upgrades
	for round, most := 1, 2; ; round++ { // the third is for a server of HTTP/2 that got nothing, or speaks it no longer
		resp, err := t.once(h, r, round == 1, only1)
		fresh := notBegun(err)
		if fresh && hasBody(r) || errors.Is(err, errHTTP1) {
			most = 3
		}
		if round >= most || !errors.Is(err, errUnanswered) {
			return resp, err
		}
		again, ok := Again(r)
		if fresh { // net/http has tried several connections if there is no body
			again, ok = rewound(r)
			only1 = only1 || !t.Clear && (round > 1 || !hasBody(r)) && !needs2(r)
		}
		if !ok {
			return nil, err
		}
		r = again
	}
}

// once sends a request once, on a kept connection if it may and there is one.
func (t *Transport) once(h *host, r *http.Request, kept, only1 bool) (*http.Response, error) {
	if t.Clear && !only1 || !only1 && h.multiplexes(t.MaxAge) {
		return t.multiplex(h, r)
	}
	var c *conn
	if kept {
		c = t.kept(h)
	}
	if c == nil {
		var err error
		if c, err = t.connect(r.Context(), h, only1); err != nil {
			closeBody(r)
			return nil, err
		}
		if c.multiplexes() {
			c.Close() // net/http makes its own
			return t.multiplex(h, r)
		}
	}
	return c.exchange(r)
}

// hostOf returns the host that a request is for, or an error if it cannot be sent to any.
func (t *Transport) hostOf(r *http.Request) (*host, error) {
	switch {
	case r.URL == nil || r.URL.Scheme != "http" && r.URL.Scheme != "https" || r.URL.Host == "":
		return nil, errors.Join(ErrInvalid, errors.New("its URL is not one of HTTP"))
	case r.Method != "" && !httpguts.ValidHeaderFieldName(r.Method) || r.Method == http.MethodConnect:
		return nil, errors.Join(ErrInvalid, errors.New("its method cannot be sent"))
	}
	for _, fields := range [...]http.Header{r.Header, r.Trailer} {
		for name, lines := range fields {
			if !httpguts.ValidHeaderFieldName(name) {
				return nil, errors.Join(ErrInvalid, errors.New("the name of a field is no token"))
			}
			for _, v := range lines {
				if !httpguts.ValidHeaderFieldValue(v) {
					return nil, errors.Join(ErrInvalid, errors.New("a field has a control character"))
				}
			}
		}
	}
	name, err := httpguts.PunycodeHostPort(r.URL.Host)
	if host, errHost := httpguts.PunycodeHostPort(cmp.Or(r.Host, r.URL.Host)); errHost != nil || !httpguts.ValidHostHeader(host) {
		err = errors.New("its host cannot be sent")
	}
	if err != nil {
		return nil, errors.Join(ErrInvalid, err)
	}
	return t.host(r.URL.Scheme, name), nil
}

// connect makes a connection. If it speaks HTTP/2, its TLS has found that out. If nobody waits for it any more it is
// kept for the next request: where connecting takes longer than requests wait, none would ever be sent otherwise.
func (t *Transport) connect(ctx context.Context, h *host, only1 bool) (*conn, error) {
	type made struct {
		c   *conn
		err error
	}
	done := make(chan made)
	go func() {
		within, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cmp.Or(t.ConnectTimeout, time.Minute), errConnect)
		defer cancel()
		c, err := t.make(within, h, only1)
		if err != nil && within.Err() != nil {
			err = context.Cause(within)
		}
		select {
		case done <- made{c, err}:
		case <-ctx.Done():
			switch {
			case err != nil:
			case c.multiplexes():
				c.Close()
			default:
				t.keep(c)
			}
		}
	}()
	select {
	case m := <-done:
		return m.c, m.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errConnect = &net.OpError{Op: "dial", Net: "tcp", Err: timeout("no connection in time")}

func (t *Transport) make(ctx context.Context, h *host, only1 bool) (*conn, error) {
	for { // each round but the last finds an address that was good before, or not tried
		c, err := t.dial(ctx, h)
		if err != nil || h.scheme != "https" {
			return c, err
		}
		err = t.encrypt(ctx, h, c, only1)
		if err == nil {
			return c, nil
		}
		c.Close()
		if ctx.Err() != nil || !c.addr.IsValid() || !t.refused(h, c.addr) {
			return nil, err
		}
	}
}

// encrypt begins TLS on a connection.
func (t *Transport) encrypt(ctx context.Context, h *host, c *conn, only1 bool) error {
	config := &tls.Config{}
	if t.TLS != nil {
		config = t.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = h.name
	}
	if config.NextProtos = []string{"http/1.1"}; t.HTTP2 && !only1 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	c.below = &ending{Conn: c.Conn}
	to := tls.Client(c.below, config)
	if err := to.HandshakeContext(ctx); err != nil {
		return err
	}
	state := to.ConnectionState()
	c.Conn, c.tls = to, &state
	return nil
}

// Again returns a request to be sent a second time. It isn't ok if nobody waits for the answer any more, if the method
// is not idempotent (RFC 9110 section 9.2.2), or if the body is gone.
func Again(r *http.Request) (_ *http.Request, ok bool) {
	if r.Method != "" && !rfc9111.IsSafe(r.Method) && r.Method != http.MethodPut && r.Method != http.MethodDelete {
		return nil, false
	}
	return rewound(r)
}

// needs2 reports whether a request has no meaning by HTTP/1.
func needs2(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// rewound returns a request with its body from the beginning. It isn't ok if nobody waits for the answer any more, or
// if the body is gone.
func rewound(r *http.Request) (_ *http.Request, ok bool) {
	if r.Context().Err() != nil {
		return nil, false
	}
	if !hasBody(r) {
		return r, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	out := *r
	out.Body = body
	return &out, true
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// A timeout is the error of what did not happen in time.
type timeout string

func (e timeout) Error() string { return string(e) }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
