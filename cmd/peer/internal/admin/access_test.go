package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
)

// The admin listener refuses requests of a web page that rebinds its name, requests through a
// proxy, and commands that neither come by the socket nor bear a token, wherever they come from.
func TestAccess(t *testing.T) {
	token := Access{Hosts: []string{"peer.example"}, Operators: authority.Operators{Tokens: []string{"", "a token"}}}
	socket := Access{Operators: authority.Operators{Socket: true}}
	for _, tt := range []struct {
		name                       string
		access                     Access
		method, path, host, remote string
		header                     []string
		want                       int
	}{
		{"by address", Access{}, "GET", "/status.json", "127.0.0.1:3129", "", nil, 200},
		{"by IPv6 address", Access{}, "GET", "/status.json", "[::1]:3129", "", nil, 200},
		{"as probes ask", Access{}, "GET", "/readyz", "10.0.0.7:3129", "10.0.0.1:4", nil, 200},
		{"localhost", Access{}, "GET", "/status.json", "localhost:3129", "", nil, 200},
		{"by a service's name", Access{}, "GET", "/metrics", "peer-1:3129", "10.0.0.1:4", nil, 200},
		{"by a configured name", token, "GET", "/status.json", "Peer.Example:3129", "", nil, 200},
		{"rebinding", Access{}, "GET", "/status.json", "evil.example", "", nil, 421},
		{"rebinding, with a dot", Access{}, "GET", "/status.json", "evil.example.", "", nil, 421},
		{"rebinding, an order", Access{}, "POST", "/purge", "evil.example", "", []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, 421},
		{"another site", token, "POST", "/purge", "127.0.0.1:3129", "", []string{"Authorization", "Bearer a token", "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{"through a proxy", Access{}, "GET", "/status.json", "127.0.0.1:3129", "", []string{"Via", "1.1 p2"}, 403},
		{"reading, forwarded", Access{}, "GET", "/status.json", "127.0.0.1:3129", "", []string{"X-Forwarded-For", "10.0.0.1"}, 200},
		{"over loopback", Access{}, "POST", "/purge", "127.0.0.1:3129", "", nil, 401},
		{"a reload over loopback", Access{}, "POST", "/reload", "127.0.0.1:3129", "", nil, 401},
		{"a session over loopback", Access{}, "POST", "/session", "127.0.0.1:3129", "", nil, 401},
		{"DELETE", Access{}, "DELETE", "/status.json", "127.0.0.1:3129", "", nil, 401},
		{"by the socket", socket, "POST", "/purge", "localhost", "", nil, 200},
		{"by the socket, under any name", socket, "POST", "/purge", "a.peer.example", "", nil, 200},
		{"by a proxy at the socket", socket, "POST", "/purge", "localhost", "", []string{"X-Forwarded-For", "10.0.0.1"}, 403},
		{"by a web page at the socket", socket, "POST", "/purge", "localhost", "", []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{"from elsewhere", Access{}, "POST", "/purge", "10.0.0.7:3129", "10.0.0.1:4", nil, 401},
		{"with the token through a proxy", token, "POST", "/purge", "127.0.0.1:3129", "", []string{"Authorization", "Bearer a token", "X-Forwarded-For", "10.0.0.1"}, 403},
		{"with an empty token", token, "POST", "/purge", "127.0.0.1:3129", "", []string{"Authorization", "Bearer "}, 401},
		{"with the token", token, "POST", "/purge", "10.0.0.7:3129", "10.0.0.1:4", []string{"Authorization", "Bearer a token"}, 200},
		{"with another", token, "POST", "/purge", "127.0.0.1:3129", "", []string{"Authorization", "Bearer a taken"}, 401},
		{"without", token, "POST", "/purge", "127.0.0.1:3129", "", nil, 401},
		{"profiles", Access{}, "GET", "/debug/pprof/cmdline", "127.0.0.1:3129", "", nil, 404},
		{"profiles, asked for", Access{Profiles: true}, "GET", "/debug/pprof/cmdline", "127.0.0.1:3129", "", nil, 200},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(`{"url":"/x"}`))
		r.Host, r.RemoteAddr = tt.host, "127.0.0.1:5"
		if tt.remote != "" {
			r.RemoteAddr = tt.remote
		}
		for i := 0; i < len(tt.header); i += 2 {
			r.Header.Set(tt.header[i], tt.header[i+1])
		}
		w := httptest.NewRecorder()
		Handler(source{example()}, NewDurations(), func() Access { return tt.access }).ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: %s %s = %d, want %d: %s", tt.name, tt.method, tt.path, w.Code, tt.want, w.Body)
		}
		if tt.want != http.StatusOK && strings.Contains(w.Body.String(), "peer-1") {
			t.Errorf("%s: the refusal says %s", tt.name, w.Body)
		}
	}
}
