package proxy

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// isWebSocket reports whether r asks to change to the WebSocket protocol (RFC
// 6455 section 4.1). Other upgrades are dropped with the connection fields: h2c
// above all would carry requests past the cache.
func isWebSocket(r *http.Request) bool {
	if r.Method != http.MethodGet || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	for token := range rfc9111.Members(r.Header["Connection"]) {
		if strings.EqualFold(token, "upgrade") {
			return true
		}
	}
	return false
}

// upgrade passes r, with its upgrade, to the origin and, when that agrees, bytes
// both ways. r's header is our own.
func (h *Handler) upgrade(w http.ResponseWriter, r *http.Request) cache.Result {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.Header.Set("Connection", "Upgrade")
	out.Header.Set("Upgrade", "websocket")
	rfc9111.AddVia(out.Header, 1, 1, h.cfg.Name)
	resp, err := h.origins.RoundTrip(out)
	if err != nil {
		res := h.cache.Refuse(w, r, GatewayError, http.StatusBadGateway, "origin-unreachable", "the origin of "+out.URL.Host+" cannot be reached")
		res.Err = err
		return res
	}
	defer resp.Body.Close()
	origin, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		return h.notUpgraded(w, resp)
	}
	client, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return h.cache.Refuse(w, r, ClientError, http.StatusHTTPVersionNotSupported, "no-upgrade", "upgrades work over HTTP/1.1 only")
	}
	client = conn.Patient(client, h.cfg.SendTimeout) // Hijack ended that; the origin's is its transport's
	res := cache.Result{Status: resp.StatusCode, Outcome: Bypass}
	if !h.track(client) {
		res.Err = net.ErrClosed
		return res
	}
	defer h.untrack(client)
	h.counters.tunnels.Add(1)
	if res.Err = h.writeSwitch(client, resp); res.Err != nil {
		return res
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(origin, buf.Reader)
		origin.Close()
	}()
	res.Bytes, _ = io.Copy(client, origin)
	h.cache.Counters.BytesFromOrigins.Add(uint64(res.Bytes))
	client.Close()
	<-done
	return res
}

// writeSwitch sends the origin's 101 to the client.
func (h *Handler) writeSwitch(client net.Conn, resp *http.Response) error {
	h.marked(resp)
	bw := bufio.NewWriter(client)
	fmt.Fprintf(bw, "HTTP/1.1 101 Switching Protocols\r\n")
	resp.Header.Write(bw)
	bw.WriteString("\r\n")
	return bw.Flush()
}

// marked adds our part in an answer that passes by the cache.
func (h *Handler) marked(resp *http.Response) {
	rfc9111.AddVia(resp.Header, 1, 1, h.cfg.Name)
	status := rfc9111.Status{Cache: h.cfg.Name, Fwd: "bypass", FwdStatus: resp.StatusCode}
	status.Add(resp.Header)
}

// notUpgraded passes on the answer of an origin that didn't agree.
func (h *Handler) notUpgraded(w http.ResponseWriter, resp *http.Response) cache.Result {
	rfc9111.RemoveHopByHop(resp.Header)
	h.marked(resp)
	header := w.Header()
	maps.Copy(header, resp.Header)
	w.WriteHeader(resp.StatusCode)
	res := cache.Result{Status: resp.StatusCode, Outcome: Bypass}
	res.Bytes, res.Err = io.Copy(w, resp.Body)
	res.Broken = res.Err != nil
	return res
}
