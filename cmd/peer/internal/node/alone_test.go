package node

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A peer that finds none of the peers that it should join serves requests, and reports that it is
// alone until another one starts.
func TestAlone(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := local(t, t.TempDir())
	cfg.Gossip = free.Addr().String()
	cfg.Join = []string{"127.0.0.1:1", cfg.Gossip}
	free.Close()
	a := start(t, cfg, nil)
	ask := func(path string) (int, string) {
		t.Helper()
		r, err := http.Get("http://" + a.Addresses().Admin + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
	for path, first := range map[string]string{"/readyz": "ready\n", "/healthz": "", "/status": "", "/metrics": ""} {
		wants := []string{first, "degraded: cluster: alone: no other peer is found: --join 127.0.0.1:1: unreachable: ",
			"; --join " + cfg.Gossip + ": unreachable: no address but this peer's own\n"}
		if path == "/metrics" {
			wants = []string{`peer_degraded{part="cluster"} 1`}
		}
		code, text := ask(path)
		for _, want := range wants {
			if code != 200 || !strings.Contains(text, want) {
				t.Errorf("GET %s of a peer that is alone = %d, no %q in\n%s", path, code, want, text)
			}
		}
	}
	other := local(t, t.TempDir())
	other.Name, other.Join = "b", []string{cfg.Gossip}
	start(t, other, nil)
	var text string
	for end := time.Now().Add(time.Minute); strings.Count(text, "\n") != 2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, text = ask("/readyz")
	}
	if !strings.HasPrefix(text, "ready\nversion ") || strings.Contains(text, "degraded") {
		t.Errorf("GET /readyz of a peer that is found other peers: %s", text)
	}
}
