//go:build linux

package main

import (
	"fmt"
	"golang.org/x/net/dns/dnsmessage"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Two nginx have unlike copies behind HAProxy, round robin: one with the same bytes and another date and tag, then
// one with an older version. Each download is whole and of one version, or breaks off and says so; never a mixture.
// Nobody who asks again is left without.
func TestStreetUnlikeCopies(t *testing.T) {
	onTheStreet(t, func(s *street) {
		const large, small = 20 << 20, 3000
		bodies := map[string][2]string{"same.bin": {noise(1, large), noise(1, large)}, "old.bin": {noise(2, large), noise(3,
			large-12345)},
			"same.txt": {noise(4, small), noise(4, small)}, "old.txt": {noise(5, small), noise(6, small)}}
		conf := "defaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\nlisten front\n bind 127.0.0.1:8000\n balance roundrobin\n"
		for i := range 2 {
			name, addr := fmt.Sprint("copy", i), fmt.Sprint("127.0.0.1:808", i)
			for file, text := range bodies {
				path := s.file(name+"/www/"+file, text[i])
				when := time.Now().Add(-time.Duration(100+10*i) * time.Hour)
				if err := os.Chtimes(path, when, when); err != nil {
					s.Fatal(err)
				}
			}
			s.nginx(name, addr,
				"server { listen "+addr+"; root /run/street/"+name+"/www; location / { expires 1h; } location ~ txt { expires 1s; } }")
			conf += fmt.Sprintf(" server s%d %s\n", i, addr)
		}
		s.server("", "127.0.0.1:8000", "haproxy", "-db", "-f", s.file("haproxy.cfg", conf))
		a := s.peer("", "a", "127.0.0.1", "--origin", "http://127.0.0.1:8000", "--store-size", "512MiB")
		b := s.peer("", "b", "127.0.0.1", "--origin", "http://127.0.0.1:8000", "--store-size", "512MiB", "--join", a.gossip)
		cut := make(map[string]int)
		var mu sync.Mutex
		download := func(p *process, path string, first, last int) bool { // last < 0: all
			var fields []string
			file, _, _ := strings.Cut(path[1:], "?")
			of := bodies[file]
			if last >= 0 {
				fields = []string{fmt.Sprintf("Range: bytes=%d-%d", first, last)}
			}
			h, got, err := s.from(p.listen, path, fields...)
			mu.Lock()
			defer mu.Unlock()
			for _, version := range of {
				if want := version; last >= 0 && h.Get("Status") == "206" {
					want = want[first:min(last+1, len(want))]
					if got == want && err == nil && strings.HasPrefix(h.Get("Content-Range"), fmt.Sprintf("bytes %d-%d/%d", first,
						last, len(version))) {
						return true
					}
				} else if got == want && err == nil && h.Get("Status") == "200" {
					return true
				}
				if err != nil && strings.HasPrefix(version[max(first, 0):], got) {
					cut[path]++
					return false
				}
			}
			s.Errorf("%s at %s: %s, %d bytes that are no version's, %v", path, p.name, h.Get("Status"), len(got), err)
			return false
		}
		for file, of := range bodies {
			some := func(path string) {
				for i := range 6 {
					at := i * len(of[1]) / 7
					download([]*process{a, b}[i%2], path, at, at+len(of[1])/10)
				}
			}
			for i := range 4 {
				p := []*process{a, b}[i%2]
				if whole := download(p, "/"+file, 0, -1); !whole && i > 1 {
					s.Errorf("%s at %s breaks off again", file, p.name)
				}
			}
			some("/" + file)
			some("/" + file + "?parts")
			var clients sync.WaitGroup
			for i := range 4 {
				clients.Go(func() { download([]*process{a, b}[i%2], "/"+file+"?parts", 0, -1) })
				clients.Go(func() { download([]*process{a, b}[i%2], "/"+file+"?crowd", 0, -1) })
			}
			clients.Wait()
		}
		for range 6 { // the small ones live a second, and are validated at either
			time.Sleep(700 * time.Millisecond)
			s.from("127.0.0.1:8000", "/other") // so that it is not always the same peer's turn
			for _, p := range []*process{a, b} {
				if !download(p, "/same.txt", 0, -1) || !download(p, "/old.txt", 0, -1) {
					s.Error("a small one breaks off")
				}
			}
		}
		for i, p := range []*process{a, b, a, b} { // both have all of what they were asked for often
			before := s.lines("/run/street/copy0/access.log", "bin") + s.lines("/run/street/copy1/access.log", "bin")
			if download(p, "/same.bin", 0, -1); i > 1 && s.lines("/run/street/copy0/access.log",
				"bin")+s.lines("/run/street/copy1/access.log", "bin") > before {
				s.Errorf("%s has not stored it", p.name)
			}
		}
		for _, file := range []string{"same.bin", "old.bin", "same.txt", "old.txt"} {
			first, second := s.lines("/run/street/copy0/access.log", file), s.lines("/run/street/copy1/access.log", file)
			if s.Logf("%s: %d and %d requests at the copies", file, first, second); first == 0 || second == 0 {
				s.Error("one copy was never asked: this shows nothing")
			}
		}
		for path, n := range cut { // what neither has seen may break off once at each
			if n > 2 {
				s.Errorf("%s broke off %d times", path, n)
			}
		}
		s.Logf("broken off: %v", cut)
	}, "nginx", "haproxy")
}

// A nameServer answers for origin.test what a scene wants, with a TTL of a second.
type nameServer struct {
	mu     sync.Mutex
	ips    []string
	rcode  dnsmessage.RCode
	silent bool
	asked  int
}

// names serves names at 127.0.0.53, and has all programs of the scene ask there.
func (s *street) names() *nameServer {
	s.Helper()
	s.run("mount", "--bind", s.file("resolv.conf", "nameserver 127.0.0.53\noptions timeout:1 attempts:2\n"),
		"/etc/resolv.conf")
	conn, err := net.ListenPacket("udp", "127.0.0.53:53")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	n := &nameServer{}
	go func() {
		for buf := make([]byte, 2000); ; {
			k, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:k]) == nil {
				if out := n.answer(&m); out != nil {
					conn.WriteTo(out, from)
				}
			}
		}
	}()
	return n
}

func (n *nameServer) answer(m *dnsmessage.Message) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked++; n.silent {
		return nil
	}
	m.Response, m.RCode, m.Additionals = true, n.rcode, nil
	for _, text := range n.ips {
		ip := netip.MustParseAddr(text)
		head := dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 1}
		switch {
		case n.rcode != 0:
		case ip.Is4() && m.Questions[0].Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: ip.As4()}})
		case ip.Is6() && m.Questions[0].Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	out, _ := m.Pack()
	return out
}

// says has it answer so from now on.
func (n *nameServer) says(rcode dnsmessage.RCode, ips ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rcode, n.ips, n.silent = rcode, ips, false
}

// The name of an origin moves while the old server goes on, and while it does not; it has addresses of which some
// answer nobody; and it is gone, broken or silent for a while: what is stored is served, the operator is told, and it
// comes back.
func TestStreetNames(t *testing.T) {
	onTheStreet(t, func(s *street) {
		dns := s.names()
		dns.says(0, "127.0.1.1")
		old, next := s.origin("127.0.1.1:80", nil), s.origin("127.0.1.2:80", nil)
		a := s.peer("", "a", "127.0.0.1", "--origin", "http://origin.test", "--connect-timeout", "3s", "--connection-age",
			"1s")
		from := func(ip, path string) string { return ip + ":80 origin.test" + path }
		s.gets(a, "/kept", 200, from("127.0.1.1", "/kept"))
		s.gets(a, "/stale?cc=max-age=1,stale-if-error=600", 200, from("127.0.1.1", "/stale"))

		// It moves, and the old server goes on.
		dns.says(0, "127.0.1.2")
		i := 0
		asks := func() string { i++; return fmt.Sprintf("/moving%d?cc=no-store", i) }
		took := eventually(s.T, 90*time.Second, "requests go where the name leads", func() bool {
			_, body, err := s.from(a.listen, asks())
			if err != nil || !strings.Contains(body, ":80 origin.test/moving") {
				s.Fatalf("%q, %v", body, err)
			}
			time.Sleep(100 * time.Millisecond)
			return strings.HasPrefix(body, "127.0.1.2")
		})
		before := old.count("")
		for range 20 {
			s.from(a.listen, asks())
		}
		if n := old.count("") - before; n > 0 {
			s.Errorf("%d of 20 requests still go to the old server", n)
		}
		s.Logf("it moves: after %v and %d requests all go to the new server", took.Round(time.Second), i)

		// It moves back, and nothing listens at the old address any more.
		dns.says(0, "127.0.1.1")
		time.Sleep(1100 * time.Millisecond) // its TTL
		next.server.Close()
		failed := 0
		took = eventually(s.T, time.Minute, "requests go where the name leads", func() bool {
			h, _, err := s.from(a.listen, asks())
			if err == nil && h.Get("Status") == "200" {
				return true
			}
			failed++
			time.Sleep(100 * time.Millisecond)
			return false
		})
		s.Logf("it moves, and the old server ends: after %v and %d errors all is well", took.Round(time.Second), failed)
		if failed > 0 {
			s.Errorf("%d requests failed although the name led to a server", failed)
		}

		// The first of its addresses are none.
		dns.says(0, "127.0.1.9", "fd00::9", "127.0.1.1")
		b := s.peer("", "b", "127.0.0.1", "--origin", "http://origin.test", "--connect-timeout", "3s", "--connection-age",
			"1s")
		for range 10 {
			if h, _, err := s.from(b.listen, asks()); err != nil || h.Get("Status") != "200" {
				s.Errorf("with one good address of three: %v, %v", h, err)
			}
		}

		// It is gone, broken, and silent.
		names := 0
		for what, set := range map[string]func(){
			"NXDOMAIN": func() { dns.says(dnsmessage.RCodeNameError) },
			"SERVFAIL": func() { dns.says(dnsmessage.RCodeServerFailure) },
			"nothing":  func() { dns.says(0) },
			"silence":  func() { dns.mu.Lock(); dns.silent = true; dns.mu.Unlock() },
		} {
			set()
			// A peer that knows its address goes on with that.
			if h, _, err := s.from(a.listen, asks()); err != nil || h.Get("Status") != "200" {
				s.Errorf("%s: a peer that knew the address: %v %v", what, h, err)
			}
			names++
			c := s.peer("", fmt.Sprint("c", names), "127.0.0.1", "--origin", "http://origin.test", "--connect-timeout", "3s",
				"--join", a.gossip)
			eventually(s.T, time.Minute, "they know each other", func() bool {
				m, ok := c.member("a")
				n, back := a.member(c.name)
				return ok && m.Current && m.Keys >= 1 && back && n.State == "alive"
			})
			s.gets(c, "/kept", 200, from("127.0.1.1", "/kept"))
			began := time.Now()
			h, body, err := s.from(c.listen, asks())
			if status := h.Get("Status"); err != nil || status != "502" && status != "504" {
				s.Errorf("%s: %s %q, %v", what, status, body, err)
			}
			s.Logf("%s: a new peer answers a miss %s after %v: %s", what, h.Get("Status"),
				time.Since(began).Round(100*time.Millisecond), strings.TrimSpace(body))
			troubles := fmt.Sprint(c.status().Health)
			if !strings.Contains(troubles, "origin.test") {
				s.Errorf("%s: c is called healthy: %s", what, troubles)
			}
			dns.says(0, "127.0.1.1")
			took := eventually(s.T, 30*time.Second, "it comes back after "+what, func() bool {
				h, _, _ := s.from(c.listen,
					asks())
				return h.Get("Status") == "200"
			})
			if troubles := fmt.Sprint(c.status().Health); strings.Contains(troubles, "origin.test") {
				s.Errorf("after %s: %s", what, troubles)
			}
			s.Logf("after %s: it is back after %v", what, took.Round(100*time.Millisecond))
			c.stop()
		}
		a.quiet("origin.test")
	})
}
