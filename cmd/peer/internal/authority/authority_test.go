package authority

import (
	"net/http"
	"net/netip"
	"testing"
)

// An address is no authority unless its network was named, a trace of a proxy that was not named takes all authority
// away, and the token is what stands in the list, to the byte.
func TestDecide(t *testing.T) {
	nobody, socket := Operators{}, Operators{Socket: true}
	token := Operators{Tokens: []string{"", "a token of an operator", "another"}}
	network := Operators{Networks: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}
	for _, tt := range []struct {
		name   string
		by     Operators
		from   string
		named  bool
		fields [][2]string
		want   Verdict
	}{
		{"loopback", nobody, "127.0.0.1:5", false, nil, Unknown},
		{"loopback of IPv6", nobody, "[::1]:5", false, nil, Unknown},
		{"loopback, by a named proxy", nobody, "127.0.0.1", true, nil, Unknown},
		{"the socket", socket, "@", false, nil, Granted},
		{"the socket behind a proxy", socket, "@", false, [][2]string{{"X-Forwarded-For", "192.0.2.1"}}, Relayed},
		{"the token", token, "192.0.2.1:5", false, [][2]string{{"Authorization", "Bearer a token of an operator"}}, Granted},
		{"the other token", token, "192.0.2.1:5", false, [][2]string{{"Authorization", "Bearer another"}}, Granted},
		{"half of it", token, "127.0.0.1:5", false, [][2]string{{"Authorization", "Bearer a token"}}, Unknown},
		{"no token", token, "127.0.0.1:5", false, [][2]string{{"Authorization", "Bearer "}}, Unknown},
		{"without Bearer", token, "127.0.0.1:5", false, [][2]string{{"Authorization", "another"}}, Unknown},
		{"the token through a proxy", token, "127.0.0.1:5", false, [][2]string{{"Authorization", "Bearer another"}, {"X-Real-IP", "192.0.2.1"}}, Relayed},
		{"a network", network, "10.9.1.1:5", false, nil, Granted},
		{"a network, mapped", network, "::ffff:10.9.1.1", false, nil, Granted},
		{"another", network, "10.8.1.1:5", false, nil, Unknown},
		{"no address", network, "10.9", false, nil, Unknown},
		{"a network through a proxy", network, "10.9.1.1:5", false, [][2]string{{"Via", "1.1 p"}}, Relayed},
		{"a network through a named proxy", network, "10.9.1.1", true, [][2]string{{"Via", "1.1 p"}}, Granted},
	} {
		r := &http.Request{Header: http.Header{}}
		for _, f := range tt.fields {
			r.Header.Set(f[0], f[1])
		}
		if got := tt.by.Decide(r, tt.from, tt.named); got != tt.want {
			t.Errorf("%s: Decide(%v, %q, %v) = %d, want %d", tt.name, tt.fields, tt.from, tt.named, got, tt.want)
		}
	}
}

// Each field by which proxies show themselves is a trace, also an empty one, and no other field is.
func TestTrace(t *testing.T) {
	for name, want := range map[string]string{
		"via": "Via", "forwarded": "Forwarded", "x-real-ip": "X-Real-Ip", "x-forwarded-for": "X-Forwarded-For",
		"X-Forwarded-Proto": "X-Forwarded-Proto", "X-Forwarded-Host": "X-Forwarded-Host", "X-Forwarded-Anything": "X-Forwarded-Anything",
		"cf-connecting-ip": "Cf-Connecting-Ip", "X-Original-Url": "X-Original-Url",
		"Authorization": "", "X-Via": "", "Accept": "", "X-Purge-Method": "", "Sec-Fetch-Site": "",
	} {
		h := http.Header{"Host": {"x"}}
		h.Set(name, "")
		if got := Trace(h); got != want {
			t.Errorf("Trace(%s) = %q, want %q", name, got, want)
		}
	}
	if got := Trace(http.Header{"Via": {"x"}, "X-Forwarded-For": {"x"}, "Forwarded": {"x"}}); got != "Forwarded" {
		t.Errorf("Trace of three = %q, want the first by name", got)
	}
}
