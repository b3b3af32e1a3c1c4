//go:build unix

package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls/certtest"
)

// The page's nginx works as the page says, and so do the commands for objects that were requested
// through it.
func TestSitesTerminator(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		io.WriteString(w, strings.Join([]string{r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("Forwarded")}, " "))
	}))
	defer app.Close()
	p := inProcess(t, local(t, "a", "--origin", app.URL, "--trusted-proxies", "127.0.0.1"))
	conf := ""
	for _, b := range pageOf(t, "cmd/peer/SITES.md").blocks {
		if b.language == "nginx" {
			conf = b.text
		}
	}
	addr := freeAddr(t)
	cert, key := certtest.New(t).Peer("www.example.com", time.Now().Add(time.Hour))
	startNginx(t, addr, strings.NewReplacer("10.0.0.1:80", p.listen, "10.0.0.2:80", p.listen, "listen 443", "listen "+addr,
		"/etc/nginx/www.pem", cert, "/etc/nginx/www.key", key).Replace(conf))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	get := func() (body, status string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+addr+"/page", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "www.example.com"
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"} {
			r.Header.Set(name, "for=lies")
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), resp.Header.Get("Cache-Status")
	}
	if body, status := get(); body != "127.0.0.1, 127.0.0.1 https www.example.com " || !strings.HasSuffix(status, "stored") {
		t.Errorf("the origin got %q (%s)", body, status)
	}
	p.stored(t, 1)
	holds(t, words(t, 0, "purge", "--prefix", "/", "--admin", p.admin), app.URL+"/ PEER", "a 0 done") // it says which URLs those are
	holds(t, words(t, 0, "why", "/page", "--admin", p.admin), "A miss", "give the client's URL")
	holds(t, words(t, 1, "purge", "page", "--admin", p.admin), `"page" is neither an absolute URL, such as http://example.com/a, nor a path`)
	holds(t, words(t, 0, "why", "https://www.example.com/page", "--admin", p.admin), "A hit")
	holds(t, words(t, 0, "purge", "https://www.example.com/page", "--everywhere", "--admin", p.admin), "a 1 done")
	if _, status := get(); !strings.Contains(status, "fwd=uri-miss") {
		t.Errorf("after the purge: %s", status)
	}
}
