//go:build !unix

package sd

import (
	"errors"
	"net"
)

// A Socket does not exist on this system.
type Socket struct{}

// Keep fails.
func Keep(string, string, net.Listener) (Socket, error) { return Socket{}, errors.ErrUnsupported }

// Become fails.
func Become(string, []string, []string, []Socket) error { return errors.ErrUnsupported }
