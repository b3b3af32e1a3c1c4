package sd

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// firstSocket is the number of the first descriptor that a manager passes on.
const firstSocket = 3

// Sockets returns the listening sockets that the service manager has opened for this process, by their
// names (FileDescriptorName= in systemd.socket(5), sd_listen_fds(3)); nil = none. Each must have one of
// the names that are allowed. It removes the variables, so that child processes do not use them.
func Sockets(allowed ...string) (map[string]net.Listener, error) {
	count, names, pid := os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES"), os.Getenv("LISTEN_PID")
	for _, name := range []string{"LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID"} {
		os.Unsetenv(name)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n <= 0 || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	list := strings.Split(names, ":")
	sockets := make(map[string]net.Listener)
	for i := range n {
		name := "unknown" // as systemd says
		if i < len(list) {
			name = list[i]
		}
		if !slices.Contains(allowed, name) {
			return nil, fmt.Errorf("the service manager passes a socket named %q: FileDescriptorName= must be one of %s", name, strings.Join(allowed, ", "))
		}
		if sockets[name] != nil {
			return nil, fmt.Errorf("the service manager passes two sockets named %q", name)
		}
		f := os.NewFile(uintptr(firstSocket+i), name)
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("the service manager's socket %q: %w", name, err)
		}
		sockets[name] = l
	}
	return sockets, nil
}
