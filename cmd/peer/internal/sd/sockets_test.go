package sd

import (
	"os"
	"strconv"
	"testing"
)

// Sockets are taken only if they are for this process and have names that it knows.
func TestSocketsRefused(t *testing.T) {
	for _, c := range []struct {
		name, count, names, pid string
		bad                     bool
	}{
		{"none", "", "", "", false},
		{"for another process", "1", "listen", "1", false},
		{"no number", "x", "listen", "", false},
		{"a name that is no setting", "1", "http", "", true},
		{"without a name", "1", "", "", true},
	} {
		if c.pid == "" {
			c.pid = strconv.Itoa(os.Getpid())
		}
		t.Setenv("LISTEN_FDS", c.count)
		t.Setenv("LISTEN_FDNAMES", c.names)
		t.Setenv("LISTEN_PID", c.pid)
		got, err := Sockets(map[string]string{"listen": ":80", "admin": ":81"})
		if (err != nil) != c.bad || got != nil {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
		if _, left := os.LookupEnv("LISTEN_FDS"); left {
			t.Errorf("%s: child processes would take the sockets for theirs", c.name)
		}
	}
}
