package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
)

const (
	headerWait = 5 * time.Second // for the PROXY header of a connection
	headerMost = 256             // connections that are waited for at a time
)

// A proxyProtocol is a listener that reads the PROXY header, version 1 or 2, that connections of the proxies in front
// begin with (HAProxy's proxy-protocol.txt), and gives them the address of the client that it names. One
// without a header is closed: whoever may leave it out could claim the address of another. Connections from
// elsewhere are left alone.
type proxyProtocol struct {
	net.Listener
	from func() []netip.Prefix // the proxies in front
	log  *slog.Logger

	ready   chan accepted
	reading chan struct{} // has an item for each header that is being read
	once    sync.Once
	closed  chan struct{}
}

type accepted struct {
	net.Conn
	err error
}

func newProxyProtocol(l net.Listener, from func() []netip.Prefix, log *slog.Logger) *proxyProtocol {
	own := &proxyProtocol{Listener: l, from: from, log: log, ready: make(chan accepted),
		reading: make(chan struct{}, headerMost), closed: make(chan struct{})}
	go own.run()
	return own
}

// run accepts connections until the listener is closed.
func (l *proxyProtocol) run() {
	for goes := true; goes; {
		c, err := l.Listener.Accept()
		if tcp, ok := c.(*net.TCPConn); !ok || !inNetworks(l.from(), tcp.RemoteAddr()) {
			goes = l.deliver(c, err)
		} else {
			select {
			case l.reading <- struct{}{}:
				go l.read(tcp)
			default: // none of so many has sent its header
				tcp.Close()
			}
		}
	}
}

// deliver has Accept return a connection, or an error, and reports whether the listener is open.
func (l *proxyProtocol) deliver(c net.Conn, err error) bool {
	select {
	case l.ready <- accepted{c, err}:
		return true
	case <-l.closed:
		if c != nil {
			c.Close()
		}
		return false
	}
}

// Accept implements [net.Listener].
func (l *proxyProtocol) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.Conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// read reads the header of a connection, and has Accept return it.
func (l *proxyProtocol) read(c *net.TCPConn) {
	c.SetReadDeadline(time.Now().Add(headerWait))
	client, err := readProxyHeader(c)
	c.SetReadDeadline(time.Time{})
	<-l.reading
	switch {
	case err != nil:
		l.log.Warn("a connection has no valid PROXY header, which --proxy-protocol demands", "from",
			c.RemoteAddr(), "err", err)
		c.Close()
	case client.IsValid():
		l.deliver(&forClient{c, net.TCPAddrFromAddrPort(client)}, nil)
	default:
		l.deliver(c, nil)
	}
}

// Close implements [net.Listener].
func (l *proxyProtocol) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// SetDeadline is for Accept.
func (l *proxyProtocol) SetDeadline(t time.Time) error {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		return d.SetDeadline(t)
	}
	return errors.ErrUnsupported
}

// A forClient connection is that of a proxy in front which names its client.
type forClient struct {
	*net.TCPConn
	client net.Addr
}

// RemoteAddr implements [net.Conn].
func (c *forClient) RemoteAddr() net.Addr { return c.client }

func inNetworks(networks []netip.Prefix, a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && authority.Within(networks, at.Addr())
}

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
