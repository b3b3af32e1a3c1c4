package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// load parses args as the command line of a command that embeds the settings.
func load(t *testing.T, args ...string) (Config, []Effective, error) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", "/var/cache")
	var app struct {
		Run struct {
			JSON   bool `name:"json"`
			Config `embed:""`
		} `cmd:""`
	}
	flags, options := NewFlags("")
	parser, err := kong.New(&app, options...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := parser.Parse(append([]string{"run"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := flags.Load(ctx, &app.Run.Config)
	return app.Run.Config, settings, err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestObjectsOfALargeStore: no more objects are planned for than the other peers take the digest of.
func TestObjectsOfALargeStore(t *testing.T) {
	for size, want := range map[string][2]uint64{
		"1MiB": {1000, 1000}, "1GiB": {32768, 32768}, "1TiB": {32 << 20, 32 << 20}, "2TiB": {46_000_000, 47_100_000}, "100TiB": {46_000_000, 47_100_000},
	} {
		c, _, err := load(t, "--store-size", size)
		if err != nil || c.Objects < want[0] || c.Objects > want[1] {
			t.Errorf("a store of %s plans for %d objects, %v, want %d to %d", size, c.Objects, err, want[0], want[1])
		}
	}
}

func TestPrecedence(t *testing.T) {
	file := write(t, "peer.yaml", "name: from-file\nlisten: 127.0.0.1:1001\nadmin: 127.0.0.1:1002\njoin: [a:1, b:2]\n")
	t.Setenv("PEER_LISTEN", "127.0.0.1:2001")
	t.Setenv("PEER_ADMIN", "127.0.0.1:2002")
	c, list, err := load(t, "--config", file, "--admin", "127.0.0.1:3002")
	if err != nil {
		t.Fatal(err)
	}
	if c.Admin != "127.0.0.1:3002" || c.Listen != "127.0.0.1:2001" || c.Name != "from-file" || c.Gossip != "127.0.0.1:7946" {
		t.Errorf("admin %s, listen %s, name %s, gossip %s: want those of flag, environment, file and default",
			c.Admin, c.Listen, c.Name, c.Gossip)
	}
	sources := make(map[string]string)
	for _, e := range list {
		sources[e.Name] = e.Value + " from " + e.Source
	}
	for name, want := range map[string]string{
		"admin": "127.0.0.1:3002 from --admin", "listen": "127.0.0.1:2001 from PEER_LISTEN",
		"name": "from-file from " + file + ":1", "join": "a:1,b:2 from " + file + ":4",
		"gossip": "127.0.0.1:7946 from default", "objects": "32768 from default",
		"store": "/var/cache/summarycache/from-file from default",
	} {
		if sources[name] != want {
			t.Errorf("%s is %s, want %s", name, sources[name], want)
		}
	}
	t.Setenv("PEER_CONFIG", file)
	if c, _, err := load(t); err != nil || c.Name != "from-file" {
		t.Errorf("file of PEER_CONFIG: name %q, %v", c.Name, err)
	}
}

func TestJoinLists(t *testing.T) {
	want := []string{"a:1", "b:2", "srv:_c._tcp.d"}
	for name, args := range map[string][]string{
		"repeated": {"--join", "a:1", "--join", "b:2", "--join", "srv:_c._tcp.d"},
		"commas":   {"--join", "a:1,b:2,srv:_c._tcp.d"},
		"list":     {"--config", write(t, "f.yaml", "join:\n  - a:1\n  - b:2\n  - srv:_c._tcp.d\n")},
	} {
		if c, _, err := load(t, args...); err != nil || !reflect.DeepEqual(c.Join, want) {
			t.Errorf("%s: Join = %q, %v, want %q", name, c.Join, err, want)
		}
	}
}

// Every setting can be set in the file.
func TestFileTakesEverySetting(t *testing.T) {
	secret := write(t, "secret", "0123456789abcdef\n")
	c, _, err := load(t, "--config", write(t, "peer.yaml", "\ufeff"+`# a whole configuration, after the mark of the byte order
name: a-1
gossip: 10.1.1.1:7946
advertise: cache-1.example
join: cache-2.example:7946
secret-file: `+secret+`
listen: "10.1.1.1:80"
origin: http://www.example/base
store: /var/cache/peer
store-size: 10GiB
memory-size: 0
objects: 1_000
false-positives: 1e-4
publish: 250ms
admin: 127.0.0.1:9000
log-level: debug
log-format: json
drain: 1m
`))
	if err == nil || !strings.Contains(err.Error(), `peer.yaml:12: objects "1_000" is not a whole number`) {
		t.Fatalf("Load = %v, want a complaint of 1_000", err)
	}
	c, list, err := load(t, "--objects=1000", "--config", write(t, "peer.yaml", "name: a-1\nsecret-file: "+secret+
		"\nstore-size: 10GiB\nmemory-size: 0\nfalse-positives: 1e-4\norigin: http://www.example/base\nlog-level: debug\ndrain: 1m\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.StoreSize != 10<<30 || c.MemorySize != 0 || c.FalsePositives != 1e-4 || string(c.Secret) != "0123456789abcdef" ||
		c.Origin.String() != "http://www.example/base" || c.LogLevel.String() != "DEBUG" || c.Drain.Minutes() != 1 {
		t.Errorf("Load = %+v", c)
	}
	for field := range reflect.TypeFor[Config]().Fields() {
		if field.Tag.Get("name") == "" {
			continue
		}
		found := false
		for _, e := range list {
			found = found || e.Name == field.Tag.Get("name")
		}
		if !found {
			t.Errorf("setting %s is not listed: it needs a line in settings.help", field.Tag.Get("name"))
		}
	}
}

func TestEveryMistakeAtOnce(t *testing.T) {
	t.Setenv("PEER_LISTEN", "127.0.0.1:99999")
	file := write(t, "peer.yaml", "origin: ftp://x\nstor-size: 1GiB\nname: {a: b}\n")
	_, _, err := load(t, "--config", file, "--store-size", "10GBs", "--join", "a", "--join", "b:0", "--log-level", "Warn")
	want := []string{
		file + `:2: unknown key "stor-size", did you mean "store-size"?`,
		file + `:3: name must be plain text or a number`,
		file + `:1: origin "ftp://x" is not an http, https or h2c URL`,
		`--store-size "10GBs" is not a size`,
		`PEER_LISTEN "127.0.0.1:99999" has port 99999, which is not between 0 and 65535`,
		`--join "a" has no port: want HOST:PORT, such as a:7946`,
		`--join "b:0" has port 0`,
		`--log-level "Warn" is none of debug, info, warn, error, did you mean "warn"?`,
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no complaint %q", w)
		}
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != len(want) {
		t.Errorf("%d complaints, want %d:\n%v", len(lines), len(want), err)
	}
}

func TestStrays(t *testing.T) {
	got := Strays([]string{"PEER_STOER=x", "PEER_STORE=x", "PEER_SERVICE_HOST=10.0.0.1", "PEER_PORT=tcp://", "PEER_GOSSIP_PORT_7946_TCP_ADDR=10.0.0.1", "PEER_ADMIN_PORT=tcp://10.0.0.1:3129", "PEER_GOSSIP_SERVICE_PORT_UDP=7946", "PEER_LISTEN_PORT=3128", "HOME=/", "PEER_LOGLEVEL=debug", "PEER_SPEED=9"})
	var want []error
	for _, text := range []string{
		"the variable PEER_STOER is not a setting, did you mean PEER_STORE?",
		"the variable PEER_LISTEN_PORT is not a setting",
		"the variable PEER_LOGLEVEL is not a setting, did you mean PEER_LOG_LEVEL?",
		"the variable PEER_SPEED is not a setting",
	} {
		want = append(want, errors.New(text))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Strays = %q, want %q", got, want)
	}
}
