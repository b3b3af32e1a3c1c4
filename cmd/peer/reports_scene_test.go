//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// purge purges what follows the scene's URL at both peers.
func (s *scene) purge(suffix string) {
	s.Helper()
	got, err := admin.Client(s.peers[0].admin).Purge(s.Context(), admin.PurgeRequest{URL: "/" + s.path + suffix, Everywhere: true}, "")
	if err != nil || got.Failed() > 0 {
		s.Fatalf("%v, error %v", got, err)
	}
}

// A sceneLog is an access log of the scene's own peer, which takes the place of the first.
type sceneLog struct {
	s    *scene
	path string
	text string
}

// logs starts a peer with an access log, and sends it a request.
func (s *scene) logs(fields ...string) *sceneLog {
	s.Helper()
	l := &sceneLog{s: s, path: filepath.Join(s.TempDir(), "access.log")}
	s.peers[0] = spawn(s.T, "run", "--name", "logs", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
		"--origin", s.origin.url, "--store", s.TempDir(), "--access-log", l.path).started
	s.get(fields...)
	return l.has("127.0.0.1")
}

// has waits until the log has these texts.
func (l *sceneLog) has(texts ...string) *sceneLog {
	l.s.Helper()
	for _, text := range texts {
		eventually(l.s.T, time.Minute, text, func() bool {
			b, err := os.ReadFile(l.path)
			l.text = string(b)
			return err == nil && strings.Contains(l.text, text)
		})
	}
	return l
}

func (l *sceneLog) hasNot(texts ...string) {
	l.s.Helper()
	for _, text := range texts {
		if strings.Contains(l.text, text) {
			l.s.Errorf("%q is in the log:\n%q", text, l.text)
		}
	}
}

// slowly answers with this many chunks, a while after each other.
func slowly(chunks int, text string) func(n int, r *http.Request, c net.Conn) string {
	return func(n int, r *http.Request, c net.Conn) string {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range chunks {
			fmt.Fprintf(c, "%x\r\n%s\r\n", len(text), text)
			time.Sleep(100 * time.Millisecond)
		}
		io.WriteString(c, "0\r\n\r\n")
		return ""
	}
}

// letters returns n bytes in which each place can be told from those near it.
func letters(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:n]
}

// unaligned answers a part with one that begins this many bytes earlier.
func unaligned(r *http.Request, whole string, earlier int) string {
	first, last := 0, len(whole)-1
	n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
	if n == 0 {
		return "200|ETag: \"x\"|Accept-Ranges: bytes" + fresh + "||" + whole
	}
	first, last = max(first-earlier, 0), min(last, len(whole)-1)
	return fmt.Sprintf("206|ETag: \"x\"|Content-Range: bytes %d-%d/%d"+fresh+"||%s", first, last, len(whole), whole[first:last+1])
}
