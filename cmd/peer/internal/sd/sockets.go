package sd

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// firstSocket is the number of the first descriptor that a manager passes on.
const firstSocket = 3

// variables are all by which sockets are passed on.
var variables = []string{"LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", handed}

// handed is the variable in which a program names the sockets for the one that replaces it: name=descriptor=address, by
// commas.
const handed = "SUMMARYCACHE_SOCKETS"

// Continues reports whether this program replaces another one in its process ([Become]). Call it before Sockets.
func Continues() bool { return os.Getenv(handed) != "" }

// Sockets returns the listening sockets that were opened for this process, by their names; nil = none. They come from
// the service manager (FileDescriptorName= in systemd.socket(5), sd_listen_fds(3)), or from the program that this one
// replaces ([Become]), unless it listened at another address. Each must have the name of a setting; the values are the
// addresses. It removes the variables, so that child processes do not use them.
func Sockets(settings map[string]string) (map[string]net.Listener, error) {
	count, names, pid, former := os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES"), os.Getenv("LISTEN_PID"),
		os.Getenv(handed)
	for _, name := range variables {
		os.Unsetenv(name)
	}
	if former != "" {
		return inherited(former, settings)
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
		if _, ok := settings[name]; !ok {
			return nil, fmt.Errorf("the service manager passes a socket named %q: FileDescriptorName= must be "+
				"one of %s", name, strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		if sockets[name] != nil {
			return nil, fmt.Errorf("the service manager passes two sockets named %q", name)
		}
		if sockets[name], err = listener(firstSocket+i, name); err != nil {
			return nil, fmt.Errorf("the service manager's socket %q: %w", name, err)
		}
	}
	return sockets, nil
}

// inherited returns the sockets of the program before. Those of settings that have another value now are closed.
func inherited(former string, settings map[string]string) (map[string]net.Listener, error) {
	sockets := make(map[string]net.Listener)
	for part := range strings.SplitSeq(former, ",") {
		name, rest, _ := strings.Cut(part, "=")
		number, addr, _ := strings.Cut(rest, "=")
		fd, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a socket", handed, part)
		}
		l, err := listener(fd, name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the socket %q of the program before: %w", name, err)
		case settings[name] != addr:
			l.Close()
		default:
			sockets[name] = l
		}
	}
	return sockets, nil
}

func listener(fd int, name string) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return net.FileListener(f)
}
