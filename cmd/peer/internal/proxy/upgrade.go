package proxy

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// isWebSocket reports whether r asks for an upgrade to WebSocket (RFC 6455 section 4.1), without a
// body, which would come before the bytes of the tunnel. Other
// upgrades are removed with the hop-by-hop fields: an upgrade to h2c would bypass the cache.
func isWebSocket(r *http.Request) bool {
	if r.Method != http.MethodGet || r.ContentLength != 0 || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	return slices.ContainsFunc(slices.Collect(rfc9111.Members(r.Header["Connection"])),
		func(token string) bool { return strings.EqualFold(token, "upgrade") })
}

// upgrade passes r on to the origin with its upgrade. If the origin agrees, it becomes a tunnel.
// r's header is our own copy.
func (h *Handler) upgrade(w http.ResponseWriter, r *http.Request) engine.Result {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.Header.Set("Connection", "Upgrade")
	out.Header.Set("Upgrade", "websocket")
	rfc9111.AddVia(out.Header, 1, 1, h.cfg.Name)
	resp, err := toOrigins{h}.RoundTrip(out)
	if err != nil {
		return h.cache.Failed(w, r, out.URL.Host, err)
	}
	if origin, ok := resp.Body.(upgraded); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		to := resp.Header["Upgrade"]
		h.mark(resp)
		resp.Header["Connection"], resp.Header["Upgrade"] = []string{"Upgrade"}, to
		var head bytes.Buffer
		head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
		resp.Header.Write(&head)
		head.WriteString("\r\n")
		return h.tunnel(w, r, resp.StatusCode, head.Bytes(), conn.Patient(origin, time.Duration(h.sendTimeout.Load())))
	}
	defer resp.Body.Close()
	h.mark(resp)                     // the origin did not agree
	w.Header()["Content-Type"] = nil // keeps the server from guessing one
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	res := engine.Result{Status: resp.StatusCode, Outcome: engine.Bypass}
	res.Bytes, res.Err = io.Copy(w, resp.Body)
	res.Broken = res.Err != nil
	return res
}

// mark removes the connection's fields from a response that bypasses the cache, and adds our members of Via and
// Cache-Status.
func (h *Handler) mark(resp *http.Response) {
	rfc9111.RemoveHopByHop(resp.Header)
	rfc9111.AddVia(resp.Header, 1, 1, h.cfg.Name)
	status := rfc9111.Status{Cache: h.cfg.Name, Fwd: "bypass", FwdStatus: resp.StatusCode}
	status.Add(resp.Header)
}
