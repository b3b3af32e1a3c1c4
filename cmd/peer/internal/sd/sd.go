// Package sd reports the state of a service to its manager, by the protocol of
// sd_notify(3): datagrams of NAME=VALUE lines to the socket that $NOTIFY_SOCKET
// names. Without one every call does nothing.
//
// Start from [FromEnvironment].
package sd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Notifier sends messages to the service manager. The nil Notifier sends none. It is
// safe for concurrent use.
type Notifier struct {
	socket   string
	watchdog time.Duration
}

// FromEnvironment returns the notifier of this process, nil if no manager set the
// variables. They are removed, so that no child process uses them.
func FromEnvironment() *Notifier {
	n := parse(os.Getenv("NOTIFY_SOCKET"), os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"), os.Getpid())
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return n
}

func parse(socket, usec, pid string, self int) *Notifier {
	if !strings.HasPrefix(socket, "/") && !strings.HasPrefix(socket, "@") || len(socket) < 2 {
		return nil
	}
	n := &Notifier{socket: socket}
	if pid == "" || pid == strconv.Itoa(self) {
		if us, err := strconv.ParseInt(usec, 10, 64); err == nil && us > 0 && us < 1<<53 {
			n.watchdog = time.Duration(us) * time.Microsecond
		}
	}
	return n
}

// Watchdog returns the interval for calls of [Notifier.Alive], half of the manager's
// limit; 0 = none are needed.
func (n *Notifier) Watchdog() time.Duration {
	if n == nil {
		return 0
	}
	return n.watchdog / 2
}

// Ready says that the service is up, with its status in a line.
func (n *Notifier) Ready(status string) error { return n.send("READY=1", "STATUS="+oneLine(status)) }

// Reloading says that a reload has begun; Ready ends it.
func (n *Notifier) Reloading() error {
	return n.send("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", monotonic().Microseconds()))
}

// Stopping says that the service is stopping.
func (n *Notifier) Stopping(status string) error {
	return n.send("STOPPING=1", "STATUS="+oneLine(status))
}

// Alive resets the watchdog.
func (n *Notifier) Alive() error { return n.send("WATCHDOG=1") }

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }

func (n *Notifier) send(lines ...string) error {
	if n == nil {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("sd: %w", err)
	}
	defer conn.Close()
	conn.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		return fmt.Errorf("sd: %w", err)
	}
	return nil
}
