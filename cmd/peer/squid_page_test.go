//go:build unix

package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
)

// blocks returns the code blocks of SQUID.md in a language.
func blocks(t *testing.T, language string) (list []string) {
	t.Helper()
	page, err := os.ReadFile("SQUID.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(page), "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(part, "```")
		list = append(list, code)
	}
	if len(list) == 0 {
		t.Fatalf("SQUID.md has no %s", language)
	}
	return list
}

// onLoopback returns the page's squid.conf with this machine's addresses and paths.
func onLoopback(t *testing.T, conf, squid, peer string) []string {
	_, port, _ := net.SplitHostPort(peer)
	for _, change := range []struct{ old, new string }{
		{"http_port 3128\n", "http_port " + squid + "\n"},
		{"cache_peer 10.0.0.1 sibling 3128 ", "cache_peer 127.0.0.1 sibling " + port + " "},
		{"src 10.0.0.1 ", "src 127.0.0.1 "},
		{"/var/spool/squid 10000 ", "DIR/cache 400 "},
	} {
		if !strings.Contains(conf, change.old) {
			t.Fatalf("SQUID.md does not have %q", change.old)
		}
		conf = strings.ReplaceAll(conf, change.old, change.new)
	}
	return strings.Split(conf, "\n")
}

// Squid accepts every line of the page.
func TestSquidTakesThePagesLines(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "squid.conf")
	all := onLoopback(t, strings.Join(blocks(t, "squid"), "\n"), "127.0.0.1:3128", "127.0.0.1:3129")
	text := strings.ReplaceAll(strings.Join(all, "\n"), "DIR", dir) + "\ncache_log " + dir + "/cache.log\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(squidBinary(t), "-k", "parse", "-f", conf).CombinedOutput()
	if err != nil || strings.Contains(string(out), "ERROR") || strings.Contains(string(out), "unrecognized") {
		t.Errorf("squid -k parse: %v\n%s", err, out)
	}
}

// The page's command and squid.conf, with only the addresses changed, do what the page says, in
// both directions.
func TestSquidPageWorks(t *testing.T) {
	if !*long {
		t.Skip("takes a minute: -long")
	}
	const objects = 200
	s := newSite(t, 2*objects, 300)
	squidAddr, peerAddr := freeAddr(t), freeAddr(t)
	command := strings.Fields(blocks(t, "sh")[0])
	for i, word := range command {
		command[i] = strings.NewReplacer("10.0.0.1:3128", peerAddr, "10.0.0.2:3128", squidAddr, "10.0.0.0/24", "127.0.0.0/8", "/var/cache/peer", t.TempDir()).Replace(word)
	}
	p := spawn(t, append(command[1:], "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0")...)
	direct := &http.Client{Transport: &http.Transport{Proxy: by(p.listen)}}
	defer direct.CloseIdleConnections()
	for i := range probes {
		s.Sizes[probe(i)] = 100
		s.fetchAll(t, direct, []string{probe(i)})
	}
	s.fetchAll(t, direct, targets(0, objects))
	eventually(t, time.Minute, "the peer holds what it fetched", func() bool { return p.status().Store.Listed == objects+probes })

	q := startSquid(t, squidSetup{addr: squidAddr, disk: true, speed: 20,
		whole: onLoopback(t, blocks(t, "squid")[0], squidAddr, peerAddr)})
	s.learn(t, q)
	s.fetchAll(t, q.client, targets(0, 2*objects))
	from := make(map[string]int)
	for _, l := range q.log() {
		if strings.HasPrefix(l.url, s.url+"/object/") {
			from[l.result+" "+l.from]++
		}
	}
	t.Logf("the Squid's answers: %v", from)
	if n := from["TCP_MISS/200 CD_SIBLING_HIT"]; n < objects*99/100 {
		t.Errorf("%d of %d objects that the peer holds came from it", n, objects)
	}
	eventually(t, time.Minute, "the peer knows what the Squid holds", func() bool {
		for _, m := range p.status().Members {
			if m.Name == "squid@"+squidAddr && m.Keys > 2*objects {
				return true
			}
		}
		return false
	})
	s.fetchAll(t, direct, targets(objects, 2*objects))
	if c := p.status().Traffic; tooFew(proxy.Counts{}, c, objects) {
		t.Errorf("%d of %d objects that the Squid holds came from it", c.SiblingHits, objects)
	}
}
