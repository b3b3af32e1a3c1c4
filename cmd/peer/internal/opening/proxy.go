package opening

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
)

const (
	headerWait = 5 * time.Second // for the PROXY header of a connection
	headerMost = 256             // connections that are waited for at a time
)

// Proxied returns a listener that reads the PROXY header, version 1 or 2, that connections of the proxies in front begin
// with (HAProxy's proxy-protocol.txt), and gives them the address of the client that it names. from returns the
// networks of these proxies. One without a header is closed: whoever may leave it out could claim the address of
// another. Connections from elsewhere are left alone.
func Proxied(l net.Listener, from func() []netip.Prefix, log *slog.Logger) net.Listener {
	return Listen(l, Opening{
		Wait: headerWait, Most: headerMost,
		Has: func(c net.Conn) bool {
			at, err := netip.ParseAddrPort(c.RemoteAddr().String())
			_, tcp := c.(*net.TCPConn)
			return tcp && err == nil && authority.Within(from(), at.Addr())
		},
		Read: func(c net.Conn) (net.Conn, error) {
			client, err := readProxyHeader(c)
			switch {
			case err != nil:
				log.Warn("a connection has no valid PROXY header, which --proxy-protocol demands", "from",
					c.RemoteAddr(), "err", err)
			case client.IsValid():
				return &forClient{c.(*net.TCPConn), net.TCPAddrFromAddrPort(client)}, nil
			}
			return c, err
		},
	})
}

// A forClient connection is that of a proxy in front which names its client.
type forClient struct {
	*net.TCPConn
	client net.Addr
}

// RemoteAddr implements [net.Conn].
func (c *forClient) RemoteAddr() net.Addr { return c.client }

var (
	errNoHeader = errors.New("not a PROXY header of version 1 or 2")
	signature   = []byte("\r\n\r\n\x00\r\nQUIT\n") // of version 2
)

// readProxyHeader reads a header, and nothing behind it. The client is not valid if the header names none
// that can be used: then it is the proxy itself, or a client by other means than TCP.
func readProxyHeader(r io.Reader) (client netip.AddrPort, err error) {
	var buf [1 << 10]byte
	if _, err := io.ReadFull(r, buf[:len(signature)]); err != nil {
		return client, err
	}
	if !bytes.Equal(buf[:len(signature)], signature) {
		return readTextHeader(r, buf[:107], len(signature))
	}
	head := buf[:4]
	if _, err := io.ReadFull(r, head); err != nil {
		return client, err
	}
	command, family, length := head[0], head[1], int(binary.BigEndian.Uint16(head[2:]))
	if command>>4 != 2 || command&15 > 1 || length > len(buf) {
		return client, errNoHeader
	}
	body := buf[:length]
	if _, err := io.ReadFull(r, body); err != nil {
		return client, err
	}
	size := map[byte]int{0x11: 4, 0x21: 16}[family] // TCP by IPv4 or IPv6
	switch {
	case command&15 == 0 || size == 0:
		return client, nil
	case length < 2*size+4:
		return client, errNoHeader
	}
	ip, _ := netip.AddrFromSlice(body[:size])
	return netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16(body[2*size:])), nil
}

// readTextHeader is readProxyHeader for version 1, of which n bytes are in buf.
func readTextHeader(r io.Reader, buf []byte, n int) (client netip.AddrPort, err error) {
	if !bytes.HasPrefix(buf, []byte("PROXY ")) {
		return client, errNoHeader
	}
	for ; n < 2 || !bytes.HasSuffix(buf[:n], []byte("\r\n")); n++ {
		if n == len(buf) {
			return client, errNoHeader
		}
		if _, err := io.ReadFull(r, buf[n:n+1]); err != nil {
			return client, err
		}
	}
	words := strings.Split(string(buf[:n-2]), " ")
	switch {
	case words[1] == "UNKNOWN":
		return client, nil
	case len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6":
		return client, errNoHeader
	}
	client, err = netip.ParseAddrPort(net.JoinHostPort(words[2], words[4]))
	if err != nil || client.Addr().Is4() != (words[1] == "TCP4") {
		return netip.AddrPort{}, errNoHeader
	}
	return client, nil
}
