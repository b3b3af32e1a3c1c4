//go:build !linux

package http1

import "net"

// Direct returns c: it spares threads on Linux.
func Direct(c net.Conn) net.Conn { return c }
