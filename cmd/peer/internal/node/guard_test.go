package node

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// through sends a request through a peer that is a forward proxy, by CONNECT if tunnel is set, and
// returns the status and the body.
func through(t *testing.T, n *Node, target string, tunnel bool) (code int, body string) {
	t.Helper()
	if !tunnel {
		proxy := &url.URL{Scheme: "http", Host: n.Addresses().Listen}
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
		answer, err := client.Get(target)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b)
	}
	c, err := net.Dial("tcp", n.Addresses().Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	u, _ := url.Parse(target)
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", u.Host, u.Host)
	b := make([]byte, 12)
	io.ReadFull(c, b)
	fmt.Sscanf(string(b), "HTTP/1.1 %d", &code)
	return code, ""
}

// A client of a forward proxy reaches no admin or gossip port of any peer of the cluster
// through it, whatever it sends.
func TestPortsOfPeersAreNotForwardedTo(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the site") }))
	defer site.Close()
	first := start(t, local(t, t.TempDir()), nil)
	second := local(t, t.TempDir())
	second.Name, second.Join = "other", []string{first.Addresses().Gossip}
	for _, a := range []string{first.Addresses().Admin, first.Addresses().Gossip, strings.TrimPrefix(site.URL, "http://")} {
		second.ConnectPorts = append(second.ConnectPorts, netip.MustParseAddrPort(a).Port()) // the worst that an operator can ask for
	}
	n := start(t, second, nil)
	for _, tt := range []struct {
		addr           string
		tunnel, refuse bool
	}{
		{strings.TrimPrefix(site.URL, "http://"), false, false},
		{strings.TrimPrefix(site.URL, "http://"), true, false},
		{first.Addresses().Gossip, false, true},
		{first.Addresses().Gossip, true, true},
		{first.Addresses().Admin, false, true},
		{n.Addresses().Gossip, false, true},
		{n.Addresses().Admin, false, true},
		{n.Addresses().Admin, true, true},
	} {
		code, body := through(t, n, "http://"+tt.addr+"/status.json", tt.tunnel)
		if tt.refuse != (code == http.StatusForbidden || code == http.StatusBadGateway) || tt.refuse && strings.Contains(body, "{") {
			t.Errorf("%s, tunnel %v: %d %s", tt.addr, tt.tunnel, code, body)
		}
	}
}

// Other machines may use a forward proxy only if the operator names them.
func TestProxyClients(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the site") }))
	defer site.Close()
	for clients, want := range map[string]int{"": 200, "127.0.0.0/8": 200, "192.0.2.0/24": 403} {
		n := start(t, with(t, func(c *config.Config) {
			if clients != "" {
				c.ProxyClients = []netip.Prefix{netip.MustParsePrefix(clients)}
			}
		}), nil)
		if code, _ := through(t, n, site.URL, false); code != want {
			t.Errorf("clients %q: %d, want %d", clients, code, want)
		}
	}
}

func with(t *testing.T, tune func(*config.Config)) config.Config {
	c := local(t, t.TempDir())
	tune(&c)
	return c
}
