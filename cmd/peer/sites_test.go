package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// ask sends a request to a peer as it is, without following redirects.
func ask(t *testing.T, peer, path, host string, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+peer+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// An application that forces https, behind a TLS terminator and a peer: no loop of
// redirects, and the inside address does not get out.
func TestBehindATLSTerminator(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		switch {
		case r.Header.Get("X-Forwarded-Proto") != "https":
			http.Redirect(w, r, "https://shop.example"+r.URL.Path, http.StatusMovedPermanently)
		case r.URL.Path == "/dir":
			http.Redirect(w, r, "http://"+r.Host+"/dir/", http.StatusMovedPermanently)
		default:
			io.WriteString(w, "for "+r.Header.Get("X-Forwarded-For"))
		}
	}))
	defer app.Close()
	a := inProcess(t, local(t, "a", "--origin", app.URL, "--trusted-proxies", "127.0.0.0/8"))
	terminated := []string{"X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.7"}
	for range 2 {
		if r, _ := ask(t, a.listen, "/", "shop.example"); r.StatusCode != 301 || r.Header.Get("Location") != "https://shop.example/" {
			t.Errorf("by http: %s, %v", r.Status, r.Header)
		}
		if r, body := ask(t, a.listen, "/", "shop.example", terminated...); r.StatusCode != 200 || body != "for 192.0.2.7, 127.0.0.1" {
			t.Errorf("by https: %s, %v, %s", r.Status, r.Header, body)
		}
		if r, _ := ask(t, a.listen, "/dir", "shop.example", terminated...); r.Header.Get("Location") != "/dir/" {
			t.Errorf("Location %s", r.Header.Get("Location"))
		}
	}
}
