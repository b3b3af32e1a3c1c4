package gossip

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// logBuffer is a log to which several goroutines write.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// has reports whether a line has all of parts.
func (l *logBuffer) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
lines:
	for line := range strings.Lines(l.b.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		return true
	}
	return false
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestJoinNamesTheMistake(t *testing.T) {
	otherSeed, err := digest.NewSet(geometry([]byte("another secret")), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		seed   func(*Config)
		joiner func(*Config)
		want   error
		logged string // at the seed
	}{
		{"other secret", nil, func(c *Config) { c.Secret = []byte("the secret of others") }, ErrSecret, "does not prove"},
		{"only the seed has a secret", nil, func(c *Config) { c.Secret = nil }, ErrSecret, "has no secret; this one has"},
		{"only the joiner has a secret", func(c *Config) { c.Secret = nil }, nil, ErrSecret, "has a secret; this one has none"},
		{"name of the seed", nil, func(c *Config) { c.Name = "p1" }, ErrNameTaken, "p1 is this very peer"},
		{"name of a member", nil, func(c *Config) { c.Name = "p2" }, ErrNameTaken, "p2 is at 10.0.0.2:7946"},
		{"other digest seed", nil, func(c *Config) { c.Holdings = NewHoldings(otherSeed) }, ErrCanary, "hash keys differently"},
		{"nobody there", nil, func(c *Config) { c.Join = []string{"10.0.0.77:7946"} }, ErrUnreachable, ""},
		{"another port", nil, func(c *Config) { c.Join = []string{"10.0.0.1:1"} }, ErrUnreachable, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				var log logBuffer
				seed := c.config("p1", "10.0.0.1")
				seed.Logger = slog.New(slog.NewTextHandler(&log, nil))
				member := c.config("p2", "10.0.0.2")
				member.Join = []string{"10.0.0.1:7946"}
				if tc.seed != nil {
					tc.seed(&seed)
					member.Secret = seed.Secret
				}
				c.start(seed)
				c.start(member)
				time.Sleep(time.Second)

				joiner := c.config("p3", "10.0.0.3")
				joiner.Join = []string{"10.0.0.1:7946"}
				if tc.joiner != nil {
					tc.joiner(&joiner)
				}
				n, err := New(joiner)
				if err != nil {
					t.Fatal(err)
				}
				defer n.Close()
				err = n.Join(t.Context())
				var je *JoinError
				if !errors.Is(err, tc.want) || !errors.As(err, &je) || je.Seed != joiner.Join[0] {
					t.Errorf("Join = %v, want %v, of %s", err, tc.want, joiner.Join[0])
				}
				time.Sleep(time.Second)
				if tc.logged != "" && !log.has(tc.logged) {
					t.Errorf("no record %q in the seed's log:\n%s", tc.logged, log.b.String())
				}
				if got := len(c.nodes["p1"].Members()); got != 1 {
					t.Errorf("the seed has %d members, want only p2", got)
				}
			})
		})
	}
}

// A seed that is another program's port is not taken for a peer with another secret.
func TestJoinAtAnotherProgram(t *testing.T) {
	const notOurs = "not the gossip port of a peer"
	for name, tc := range map[string]struct {
		secret     []byte
		says, orIt string
	}{
		"with a secret": {testSecret, notOurs, notOurs},
		"without":       {nil, "no answer in time", notOurs}, // an HTTP server waits for the end of the line, which an incarnation may hold
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				l, err := c.net.Host("10.0.0.1").Listen("10.0.0.1:80")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				go http.Serve(l, http.NotFoundHandler())
				cfg := c.config("p2", "10.0.0.2")
				cfg.Secret, cfg.Holdings, cfg.Join = tc.secret, nil, []string{"10.0.0.1:80"}
				n, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer n.Close()
				err = n.Join(t.Context())
				if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrSecret) || !strings.Contains(err.Error(), tc.says) && !strings.Contains(err.Error(), tc.orIt) {
					t.Errorf("Join = %v, want %q or %q", err, tc.says, tc.orIt)
				}
			})
		})
	}
}

// A connection that ends within its handshake does not mean that the secrets differ, and memberlist's
// messages at each restart are normal: neither is logged as a warning.
func TestLogKeepsQuietOfRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var log logBuffer
		cfg := c.config("p1", "10.0.0.1")
		cfg.Logger = log.logger()
		c.start(cfg)
		conn, err := c.net.Host("10.0.0.2").Dial(t.Context(), "10.0.0.1:7946")
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte{firstTLS, 3, 1, 2})
		conn.Close()
		second := c.config("p2", "10.0.0.2")
		second.Join, second.Logger = []string{"10.0.0.1:7946"}, log.logger()
		for _, ends := range []func(){func() { c.kill("p2") }, func() {
			if err := c.nodes["p2"].Leave(t.Context()); err != nil {
				t.Errorf("Leave = %v", err)
			}
			delete(c.nodes, "p2")
		}, func() {}} {
			c.start(second)
			within(t, 30*time.Second, c.inStep)
			ends()
			time.Sleep(10 * time.Second)
		}
		for _, quiet := range []string{"does not prove", "Refuting", "use of closed"} {
			if log.has(quiet) {
				t.Errorf("the log has %q:\n%s", quiet, log.b.String())
			}
		}
		if !log.has("a peer has left") || !log.has("a peer is gone") {
			t.Errorf("the log does not tell a peer that left from one that died:\n%s", log.b.String())
		}
	})
}

func TestIncompatibleVersionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		cfg := c.config("p1", "10.0.0.1")
		cfg.Secret = nil
		cfg.Holdings = nil
		n := c.start(cfg)
		conn, err := c.net.Host("10.0.0.2").Dial(t.Context(), "10.0.0.1:7946")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = newConn(conn, new(meters)).greet(exchange.Hello{
			MinVersion: 7, MaxVersion: 9, Incarnation: 1, Canary: canaryOf(n.Seed()), Name: "future", Address: "10.0.0.2:1",
		})
		if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "theirs is 7 to 9, ours 1") {
			t.Errorf("greet = %v, want ErrVersion with both ranges", err)
		}
	})
}

func TestRestartElsewhereIsNotANameTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(3)
		within(t, settling, c.inStep)
		c.kill("p3")
		cfg := c.config("p3", "10.0.0.33")
		cfg.Join = []string{"10.0.0.1:7946"}
		cfg.Holdings.Keys().Add(key("p3", 1))
		c.start(cfg)
		took := within(t, 20*time.Second, c.inStep)
		t.Logf("a peer restarted at another address was a member after %v", took)
	})
}

func TestConfigReportsEveryMistake(t *testing.T) {
	_, err := New(Config{
		Name: "no spaces", Bind: "nowhere", Secret: []byte("short"), Service: "x",
		Join: []string{"a:b"}, Advanced: Advanced{Limits: Limits{Members: -1}},
	})
	for _, want := range []string{"name", "bind", "secret of 5 bytes", "service", "join", "Members:-1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to mention %q", err, want)
		}
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = New(Config{Name: "p", Bind: l.Addr().String(), Logger: testLog()})
	if err == nil || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("New = %v, want the address and that it is in use", err)
	}
}

func TestSecretIsNotLogged(t *testing.T) {
	var log logBuffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", Config{Name: "p", Secret: testSecret})
	if log.has(string(testSecret)) || !log.has("config.secret=true") {
		t.Errorf("the logged configuration is %q", log.b.String())
	}
}
