//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls/certtest"
)

// A page that uses what browsers have, and posts what came of each, a line each. The other address is that of another peer.
const browserPage = `<!doctype html><meta charset=utf-8><title>street</title><link rel=icon href=data:,><link rel=stylesheet href=style.css>
<script src=script.js></script><img id=img src=picture.svg><pre id=out></pre><script>
const said = [], other = new URLSearchParams(location.search).get('other')
const text = async (path, how) => { const r = await fetch(path, how); return r.status + ' ' + await r.text() }
const tries = {
  script: async () => fromScript,
  style: async () => getComputedStyle(document.getElementById('out')).whiteSpace,
  image: async () => { await document.getElementById('img').decode(); return document.getElementById('img').naturalWidth },
  again: async () => [await text('kept'), await text('kept'), await text('kept', {cache: 'no-cache'}), await text('kept', {cache: 'reload'})].join(', '),
  coded: async () => { const t = await text('coded'); return t.length + t.slice(0, 9) },
  part: async () => { const r = await fetch('large', {headers: {Range: 'bytes=2999990-'}, cache: 'no-store'}); return r.status + ' ' + r.headers.get('Content-Range') + ' ' + (await r.text()).length },
  whole: async () => { let n = 0; for (const b of new Uint8Array(await (await fetch('large')).arrayBuffer())) n = (n * 31 + b) >>> 0; return n },
  posted: async () => text('posted', {method: 'POST', body: JSON.stringify({a: 'ü'}), headers: {'Content-Type': 'application/json'}}),
  session: async () => [await text('session'), await text('session')].join(', '),
  moved: async () => { const r = await fetch('moved'); return r.redirected + ' ' + await r.text() },
  gone: async () => text('gone'),
  events: async () => new Promise((done, failed) => { const all = [], began = performance.now(), e = new EventSource('events')
    e.onmessage = m => { all.push(m.data); if (all.length == 3) { e.close(); done(all.join('') + (performance.now() - began > 500 ? ' one by one' : ' at once')) } }; e.onerror = failed }),
  socket: async () => new Promise((done, failed) => { const s = new WebSocket(location.origin.replace('http', 'ws') + '/socket')
    s.onmessage = m => { done(m.data); s.close() }; s.onerror = failed }),
  cross: async () => [await text(other + '/shared'), await text('shared')].join(', '),
  forbidden: async () => { try { return await text(other + '/kept') } catch (e) { return e.name } },
  preflight: async () => text(other + '/shared', {method: 'PUT', body: 'x', headers: {'X-Own': '1'}}),
  protocol: async () => performance.getEntriesByType('navigation')[0].nextHopProtocol,
};
(async () => {
  for (const name in tries) {
    let got; try { got = await tries[name]() } catch (e) { got = 'failed: ' + e }
    said.push(name + ': ' + got)
  }
  fetch('said', {method: 'POST', body: said.join('\n')})
})()
</script>`

// Chromium as the user of two peers, over HTTP/1.1 and HTTP/2, and of a forward proxy: pages, revalidation, reload, codings, ranges,
// sessions, streams of events, WebSockets, and requests to another origin.
func TestStreetBrowser(t *testing.T) {
	onTheStreet(t, func(s *street) {
		chromium := browser(s.T)
		large := noise(3, 3_000_000)
		var sum uint32
		for _, b := range []byte(large) {
			sum = sum*31 + uint32(b)
		}
		visitors, said := 0, make(chan string, 1)
		o := s.origin("0.0.0.0:80", nil)
		s.run("ip", "addr", "add", "10.0.0.1/32", "dev", "lo")
		s.run("ip", "addr", "add", "10.0.0.2/32", "dev", "lo")
		own := o.server.Handler
		o.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			say := func(kind, cc, text string) {
				h.Set("Content-Type", kind)
				h.Set("Cache-Control", cc)
				o.body = func(*http.Request) string { return text }
				own.ServeHTTP(w, r)
			}
			switch r.URL.Path {
			case "/":
				say("text/html", "no-cache", browserPage)
			case "/style.css":
				say("text/css", "max-age=600", "#out { white-space: pre }")
			case "/script.js":
				say("text/javascript", "max-age=600", "const fromScript = 'ran'")
			case "/picture.svg":
				say("image/svg+xml", "max-age=600", `<svg xmlns="http://www.w3.org/2000/svg" width="7" height="7"/>`)
			case "/kept":
				say("text/plain", "max-age=600", "kept")
			case "/coded":
				say("text/plain", "max-age=600", strings.Repeat("coded text ", 10_000))
			case "/large":
				say("application/octet-stream", "max-age=600", large)
			case "/said":
				b, _ := io.ReadAll(r.Body)
				said <- string(b)
			case "/posted":
				b, _ := io.ReadAll(r.Body)
				say("text/plain", "no-store", r.Method+string(b))
			case "/session":
				c, err := r.Cookie("s")
				if err != nil {
					visitors++
					c = &http.Cookie{Name: "s", Value: fmt.Sprint(visitors), Path: "/"}
					http.SetCookie(w, c)
				}
				say("text/plain", "private", "visitor "+c.Value)
			case "/moved":
				http.Redirect(w, r, "/kept", http.StatusMovedPermanently)
			case "/gone":
				w.WriteHeader(http.StatusNoContent)
			case "/events":
				h.Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(w, "data: %d\n\n", i)
					http.NewResponseController(w).Flush()
					time.Sleep(400 * time.Millisecond)
				}
			case "/socket":
				greet(w, r)
			case "/shared": // for the origin that asks
				h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
				h.Set("Access-Control-Allow-Headers", "X-Own")
				h.Set("Access-Control-Allow-Methods", "PUT")
				h.Set("Vary", "Origin")
				say("text/plain", "max-age=600", r.Method+" shared with "+r.Header.Get("Origin"))
			default:
				http.NotFound(w, r)
			}
		})
		cert, key := certtest.New(s.T).Peer("127.0.0.1", time.Now().Add(time.Hour))
		var peers []*process
		for i, name := range []string{"a", "b"} {
			options := []string{"--origin", "http://127.0.0.1", "--compress", "zstd,gzip", "--https", fmt.Sprintf("127.0.0.1:844%d", i),
				"--https-cert", cert, "--https-key", key}
			if i > 0 {
				options = append(options, "--join", peers[0].gossip)
			}
			peers = append(peers, s.peer("", name, "127.0.0.1", options...))
		}
		forward := s.peer("", "c", "127.0.0.1", "--compress", "zstd,gzip", "--connect-port", "80")
		type visit struct{ base, other, protocol, proxy string }
		visits := []visit{{"http://10.0.0.1", "http://10.0.0.2", "http/1.1", "--proxy-server=" + forward.listen}}
		for i, p := range peers {
			visits = append(visits, visit{"http://" + p.listen, "http://" + peers[1-i].listen, "http/1.1", "--no-proxy-server"},
				visit{fmt.Sprintf("https://127.0.0.1:844%d", i), fmt.Sprintf("https://127.0.0.1:844%d", 1-i), "h2", "--no-proxy-server"})
		}
		for _, v := range visits {
			visitor := fmt.Sprint(visitors + 1)
			ctx, leave := context.WithTimeout(s.Context(), time.Minute)
			tab := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
				"--disable-background-networking", "--disable-component-update", "--disable-sync", v.proxy,
				"--user-data-dir="+profile(s.T), "--ignore-certificate-errors", "--enable-logging=stderr", v.base+"/?other="+v.other)
			var complaints lockedBuffer
			tab.Stderr = &complaints
			if err := tab.Start(); err != nil {
				s.Fatal(err)
			}
			got := "nothing within a minute"
			select {
			case got = <-said:
			case <-ctx.Done():
			}
			leave()
			tab.Wait()
			want := strings.Join([]string{"script: ran", "style: pre", "image: 7", "again: 200 kept, 200 kept, 200 kept, 200 kept",
				"coded: 110004200 coded", "part: 206 bytes 2999990-2999999/3000000 10", fmt.Sprint("whole: ", sum), "posted: 200 POST{\"a\":\"ü\"}",
				"session: 200 visitor " + visitor + ", 200 visitor " + visitor, "moved: true kept", "gone: 204 ", "events: 012 one by one", "socket: hello",
				"cross: 200 GET shared with " + v.base + ", 200 GET shared with ", "forbidden: TypeError", "preflight: 200 PUT shared with " + v.base,
				"protocol: " + v.protocol}, "\n")
			if got != want {
				s.Fatalf("%s:\n%s\nwant\n%s\n%v\n%s", v.base, got, want, o.asked, complaints.String())
			}
		}
		if n := o.count("/kept"); n > 15 { // a validation and a reload in each visit, and the first
			s.Errorf("/kept was asked for %d times at the origin", n)
		}
		for _, p := range peers {
			p.quiet()
		}
		forward.quiet("an origin does not answer") // the browser asks for its vendor's servers
	}, "chromium")
}

// greet accepts a WebSocket (RFC 6455, section 4.2.2) and sends it a text.
func greet(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n\x81\x05hello",
		base64.StdEncoding.EncodeToString(sum[:]))
	rw.Flush()
	bufio.NewReader(conn).ReadByte() // until it is closed
}
