package rules

import (
	"net/netip"
	"testing"
)

// Networks are compared with addresses of which none of IPv4 is written as of IPv6.
func TestNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8":          "10.0.0.0/8",
		"10.0.0.9":            "10.0.0.9/32",
		"::ffff:10.0.0.0/104": "10.0.0.0/8",
		"::ffff:10.0.0.9":     "10.0.0.9/32",
		"::ffff:0:0/96":       "0.0.0.0/0",
		"2001:db8::/32":       "2001:db8::/32",
		"::/0":                "::/0",
		"::ffff:0:0/90":       "",
		"10.0.0.0/33":         "",
		"office":              "",
	} {
		p, err := Network(text)
		if (err == nil) != (want != "") || err == nil && p != netip.MustParsePrefix(want) {
			t.Errorf("Network(%q) = %v, %v, want %q", text, p, err, want)
		}
	}
}
