package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// connect tunnels a CONNECT request's bytes to its target and back, unread (RFC 9110
// section 9.3.6).
func (h *Handler) connect(w http.ResponseWriter, r *http.Request, v *appliedSettings) engine.Result {
	refuse := func(status int, detail, text string) engine.Result {
		return h.cache.Refuse(w, r, engine.ClientError, status, detail, text)
	}
	if v.sites != nil {
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
		return refuse(http.StatusMethodNotAllowed, "no-tunnels", "this is a reverse proxy: it opens no tunnels")
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || port == "" || !canonical.ValidHost(r.Host) {
		return refuse(http.StatusBadRequest, "bad-target", "CONNECT needs HOST:PORT")
	}
	if v.AllowConnect != nil && !v.AllowConnect(host, port) {
		return refuse(http.StatusForbidden, "not-allowed", "tunnels to that port are not allowed here")
	}
	target := &url.URL{Scheme: "https", Host: canonical.Authority("https", r.Host)}
	_, e := v.Rules.Request(&http.Request{Method: r.Method, URL: target, Header: r.Header}, v.ruledClient(r), false, nil)
	if e.Deny != nil {
		return refuse(http.StatusForbidden, "denied", "a rule denies this tunnel")
	}
	if res, yes := h.limited(w, r, v, e.Rate); yes {
		return res
	}
	ctx, cancel := context.WithTimeout(r.Context(), v.ConnectTimeout)
	defer cancel()
	to, err := h.cfg.Dial(ctx, "tcp", r.Host)
	if err != nil {
		if cause := fault(r, err); cause != nil {
			h.failing.failed(r.Host, cause)
		}
		res := h.cache.Refuse(w, r, engine.GatewayError, http.StatusBadGateway, "origin-unreachable", r.Host+
			" cannot be reached")
		res.Err = err
		return res
	}
	h.failing.answered(r.Host)
	var head bytes.Buffer
	status := rfc9111.Status{Cache: h.cfg.Name, Fwd: "method"}
	fmt.Fprintf(&head, "HTTP/1.1 200 Connection established\r\nVia: 1.1 %s\r\nCache-Status: %s\r\n\r\n", h.cfg.Name,
		status.Append(nil))
	return h.tunnel(w, r, http.StatusOK, head.Bytes(), conn.Patient(to, time.Duration(h.sendTimeout.Load())))
}

// tunnel takes over the client's connection, writes head to it, and then copies bytes both ways
// between it and the target. It closes both.
func (h *Handler) tunnel(w http.ResponseWriter, r *http.Request, status int, head []byte, target io.ReadWriteCloser) engine.Result {
	hijacked, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		target.Close()
		return h.cache.Refuse(w, r, engine.ClientError, http.StatusHTTPVersionNotSupported, "no-tunnels",
			"tunnels work over HTTP/1.1 only")
	}
	// after Hijack, the server's limit no longer applies
	client := conn.Patient(hijacked, time.Duration(h.sendTimeout.Load()))
	closeBoth := func() { client.Close(); target.Close() }
	defer closeBoth()
	defer context.AfterFunc(h.closed, closeBoth)()
	res := engine.Result{Status: status, Outcome: engine.Bypass}
	h.counters.tunnels.Add(1)
	if _, res.Err = client.Write(head); res.Err != nil {
		return res
	}
	early := make([]byte, buf.Reader.Buffered()) // what the client sent before our answer
	io.ReadFull(buf.Reader, early)
	if _, res.Err = target.Write(early); res.Err == nil {
		res.Bytes = splice(client, target, h.cache.Tuning().BetweenBytesTimeout)
		h.cache.Counters.BytesFromOrigins.Add(uint64(res.Bytes))
	}
	return res
}

// splice copies both ways until both ends are done, and returns the bytes that went to the
// client. Once one end is done, a pause of the other longer than limit ends the tunnel: that end
// may not notice that its partner has gone. An end that reads nothing for the send timeout is
// done, too (see [conn.Patient]).
func splice(client, target io.ReadWriteCloser, limit time.Duration) (down int64) {
	var wg sync.WaitGroup
	wg.Go(func() { carry(target, client, limit) })
	down = carry(client, target, limit)
	wg.Wait()
	return down
}

// carry copies one way until from ends, or pauses for longer than limit after the other way
// ended. The loop ends: each round but the last copies something.
func carry(to, from io.ReadWriteCloser, limit time.Duration) (done int64) {
	for {
		n, err := io.Copy(to, from)
		done += n
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) { // the other way sets the deadline when it ends
			break
		}
		setReadDeadline(from, limit)
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	} else {
		to.Close()
	}
	setReadDeadline(to, limit)
	return done
}

func setReadDeadline(c io.ReadWriteCloser, limit time.Duration) {
	if c, ok := c.(interface{ SetReadDeadline(time.Time) error }); ok {
		c.SetReadDeadline(time.Now().Add(limit))
	}
}
