package sd

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := parse(path, "3000000", "", 1)
	for _, c := range []struct {
		send func() error
		want string
	}{
		{func() error { return n.Ready("two\nlines") }, "^READY=1\nSTATUS=two lines$"},
		{n.Reloading, "^RELOADING=1\nMONOTONIC_USEC=[0-9]+$"},
		{func() error { return n.Stopping("bye") }, "^STOPPING=1\nSTATUS=bye$"},
		{n.Alive, "^WATCHDOG=1$"},
	} {
		if err := c.send(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1000)
		k, err := l.Read(buf)
		if err != nil || !regexp.MustCompile(c.want).Match(buf[:k]) {
			t.Errorf("the manager got %q, %v, want %s", buf[:k], err, c.want)
		}
	}
	if n.Watchdog() != 1500*time.Millisecond {
		t.Errorf("Watchdog = %v", n.Watchdog())
	}
}

// TestNotifyLeavesNothing: a peer notifies for as long as it lives, and each message leaves no open file.
func TestNotifyLeavesNothing(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("the open files of a process are not listed here: ", err)
		}
		return len(files)
	}
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := parse(path, "3000000", "", 1)
	before := open()
	for range 100 {
		if err := n.Alive(); err != nil {
			t.Fatal(err)
		}
		if k, err := l.Read(make([]byte, 100)); k == 0 || err != nil {
			t.Fatal(k, err)
		}
	}
	if after := open(); after > before+10 {
		t.Errorf("after 100 messages %d files are open, before %d", after, before)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		socket, usec, pid string
		speaks            bool
		watchdog          time.Duration
	}{
		{"", "1000", "", false, 0},
		{"relative", "", "", false, 0},
		{"@", "", "", false, 0},
		{"@abstract", "2000000", "7", true, time.Second},
		{"/run/x", "2000000", "8", true, 0},
		{"/run/x", "-5", "", true, 0},
		{"/run/x", "99999999999999999999", "", true, 0},
	} {
		n := parse(c.socket, c.usec, c.pid, 7)
		if (n != nil) != c.speaks || n.Watchdog() != c.watchdog {
			t.Errorf("parse(%q, %q, %q) = %+v", c.socket, c.usec, c.pid, n)
		}
	}
	var nobody *Notifier
	if err := nobody.Ready(""); err != nil {
		t.Errorf("Ready without a manager = %v", err)
	}
	if err := parse(filepath.Join(t.TempDir(), "gone"), "", "", 1).Alive(); err == nil {
		t.Error("Alive to nobody = nil")
	}
}
