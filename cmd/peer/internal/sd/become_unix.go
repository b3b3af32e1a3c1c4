//go:build unix

package sd

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
)

// A Socket is a listening socket that stays open when this program is replaced.
type Socket struct {
	Name, Addr string // of its setting, and the value of that
	descriptor int
}

// Keep keeps the socket of a listener, whether that is closed or not.
func Keep(name, addr string, l net.Listener) (Socket, error) {
	s := Socket{Name: name, Addr: addr}
	of, ok := l.(syscall.Conn)
	if !ok {
		return s, fmt.Errorf("the listener %q is not a socket", name)
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return s, err
	}
	var failed error
	// which another program inherits
	err = raw.Control(func(fd uintptr) { s.descriptor, failed = syscall.Dup(int(fd)) })
	if err == nil {
		err = failed
	}
	return s, err
}

// Become replaces the program of this process by another, which gets the sockets from [Sockets]. It returns only if
// that fails.
func Become(program string, args, environ []string, sockets []Socket) error {
	environ = slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(variables, name)
	})
	var list []string
	for _, s := range sockets {
		list = append(list, fmt.Sprintf("%s=%d=%s", s.Name, s.descriptor, s.Addr))
	}
	environ = append(environ, handed+"="+strings.Join(list, ","))
	return os.NewSyscallError("execve", syscall.Exec(program, append([]string{program}, args...), environ))
}
