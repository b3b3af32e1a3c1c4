package node

import (
	"context"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestTryJoin: one address behind an entry is enough, and srv: has its addresses from DNS.
func TestTryJoin(t *testing.T) {
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down.Close()
	port := func(l net.Listener) uint16 { return l.Addr().(*net.TCPAddr).AddrPort().Port() }
	serveNames(t, map[string][]uint16{
		"_one._tcp.test.": {port(down), port(up)}, "_down._tcp.test.": {port(down)}, "_none._tcp.test.": nil,
	})
	for _, tt := range []struct{ entry, want string }{ // what the error has; "" = none
		{up.Addr().String(), ""},
		{down.Addr().String(), "refused"},
		{"srv:_one._tcp.test.", ""},
		{"srv:_down._tcp.test.", "refused"},
		{"srv:_none._tcp.test.", "no"},
	} {
		err := tryJoin(t.Context(), tt.entry)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("tryJoin(%s) = %v, want %q", tt.entry, err, tt.want)
		}
	}
}

// serveNames makes the resolver ask a server on loopback that knows SRV records, in the order of preference, and that every name is
// this machine.
func serveNames(t *testing.T, ports map[string][]uint16) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	was := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = was; c.Close() })
	go func() {
		for buf := make([]byte, 1500); ; {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			header := dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET}
			if m.Questions[0].Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
			}
			for i, port := range ports[header.Name.String()] {
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.SRVResource{
					Priority: uint16(i), Port: port, Target: dnsmessage.MustNewName("here.test."),
				}})
			}
			if text, err := m.Pack(); err == nil {
				c.WriteTo(text, from)
			}
		}
	}()
}
