// Package sd reports the state of a service to systemd or another service manager, by the protocol of
// sd_notify(3): datagrams of NAME=VALUE lines to the socket in $NOTIFY_SOCKET. Without that variable
// all calls do nothing.
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

// FromEnvironment returns the notifier of this process; nil if no manager has set the variables. It
// removes the variables, so that child processes do not use them.
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

// Watchdog returns the interval for calls of [Notifier.Alive], which is half of the manager's limit;
// 0 = the manager expects none.
func (n *Notifier) Watchdog() time.Duration {
	if n == nil {
		return 0
	}
	return n.watchdog / 2
}

// Ready reports that the service is up, with a status text.
func (n *Notifier) Ready(status string) error { return n.send("READY=1", "STATUS="+oneLine(status)) }

// Reloading reports that a reload has begun. Ready reports its end.
func (n *Notifier) Reloading() error {
	return n.send("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", monotonic().Microseconds()))
}

// Stopping reports that the service is stopping.
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
