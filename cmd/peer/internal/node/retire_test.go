package node

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"testing"
)

// TestRetire: a peer that is about to stop says so at /readyz and goes on: it takes new connections, and each answer says that
// its connection ends, hits too. HTTP/2 gets GOAWAY: the next request comes on another connection.
func TestRetire(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		io.WriteString(w, "body")
	}))
	defer origin.Close()
	cfg := local(t, t.TempDir())
	cfg.Origin, _ = url.Parse(origin.URL)
	n := start(t, cfg, nil)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	for name, transport := range map[string]*http.Transport{"HTTP/1.1": {}, "HTTP/2": {Protocols: protocols}} {
		defer transport.CloseIdleConnections()
		n.enter(serving)
		ask := func(url string) (status int, closes, reused bool) {
			t.Helper()
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatalf("%s %s: %v", name, url, err)
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatalf("%s %s: %v", name, url, err)
			}
			return resp.StatusCode, resp.Close, reused
		}
		listen := "http://" + n.Addresses().Listen
		for i := range 3 { // a miss, and hits, of which the last come before the server reads them
			if status, closes, reused := ask(listen + "/a"); status != 200 || closes || reused != (i > 0) {
				t.Errorf("%s, serving: request %d: %d, closes: %v, reused: %v", name, i, status, closes, reused)
			}
		}
		n.Retire()
		for i, path := range []string{"/a", "/a", "/new" + name} {
			status, closes, reused := ask(listen + path)
			if status != 200 || closes != (name == "HTTP/1.1") || reused != (i == 0) {
				t.Errorf("%s, retired: request %d: %d, closes: %v, reused: %v", name, i, status, closes, reused)
			}
		}
		if resp, err := http.Get("http://" + n.Addresses().Admin + "/readyz"); err != nil || resp.StatusCode != 503 {
			t.Errorf("GET /readyz = %v, %v", resp, err)
		}
	}
}
