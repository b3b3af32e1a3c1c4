//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// Networks as they are found. In each a pair of peers, on machines of their own, is a cluster: what one has stored
// the other gets from it, a purge reaches both, and both are healthy.
func TestStreetNetworks(t *testing.T) {
	onTheStreet(t, func(s *street) {
		for i, of := range []struct {
			name, a, b, street string // addresses
			before             func(a, b machine)
		}{
			{name: "IPv6 alone", a: "fd00::1/64", b: "fd00::2/64", street: "fd00::9/64"},
			{name: "dual stack, by IPv6", a: "10.0.1.1/24 fd01::1/64", b: "10.0.1.2/24 fd01::2/64", street: "fd01::9/64"},
			{name: "an MTU of 1,280, and fragments are dropped", a: "10.0.2.1/24", b: "10.0.2.2/24", street: "10.0.2.9/24",
				before: func(a, b machine) {
					for _, m := range []machine{a, b} {
						s.finish(m.command("ip", "link", "set", "n2", "mtu", "1280"))
						s.nft(m, "table ip t { chain c { type filter hook prerouting priority -450; ip frag-off & 0x3fff != 0 drop; }; }")
					}
				}},
		} {
			a, b := machine(fmt.Sprint("a", i)), machine(fmt.Sprint("b", i))
			ip := func(list string) string {
				f := strings.Fields(list)
				one, _, _ := strings.Cut(f[len(f)-1], "/")
				return one
			}
			s.machines(a, b)
			bridge := fmt.Sprint("n", i)
			s.wire(bridge, string(a)+" "+of.a, string(b)+" "+of.b, "- "+of.street)
			if of.before != nil {
				of.before(a, b)
			}
			o := s.origin(net.JoinHostPort(ip(of.street), "80"), func(r *http.Request) string {
				return r.URL.Path + strings.Repeat("x", 1_500_000)
			})
			origin := "http://" + net.JoinHostPort(ip(of.street), "80")
			one := s.peer(a, "a", ip(of.a), "--origin", origin)
			two := s.peer(b, "b", ip(of.b), "--origin", origin, "--join", one.gossip)
			for k := range 20 {
				path := fmt.Sprint("/", k)
				s.gets(one, path, 200, path+strings.Repeat("x", 1_500_000))
			}
			eventually(s.T, time.Minute, of.name+": b knows what a holds", func() bool {
				m, ok := two.member("a")
				return ok && m.Current && m.Keys >= 20
			})
			for k := range 20 {
				path := fmt.Sprint("/", k)
				if h := s.gets(two, path, 200, path+strings.Repeat("x", 1_500_000)); !strings.Contains(h.Get("Cache-Status"),
					"a; hit") {
					s.Errorf("%s: %s at b: %s", of.name, path, h.Get("Cache-Status"))
				}
			}
			asked := o.count("/7")
			if asked > 2 { // in two slices
				s.Errorf("%s: the origin was asked %d times for one object", of.name, asked)
			}
			eventually(s.T, time.Minute, of.name+": a sees b", func() bool {
				m, ok := one.member("b")
				return ok && m.State == "alive"
			})
			purged, err := admin.Client(one.status().Addresses.Socket).Purge(s.Context(), admin.PurgeRequest{URL: "/7",
				Everywhere: true}, "")
			if err != nil || purged.Failed() > 0 {
				s.Errorf("%s: the purge: %+v, %v", of.name, purged, err)
			}
			s.gets(two, "/7", 200, "/7"+strings.Repeat("x", 1_500_000))
			if o.count("/7") == asked {
				s.Errorf("%s: b serves what was purged", of.name)
			}
			time.Sleep(3 * time.Second)
			for _, p := range []*process{one, two} {
				for _, d := range p.status().Health.Degraded {
					if d.Part != "machine" { // which is busy
						s.Errorf("%s: %s is not well: %+v", of.name, p.name, d)
					}
				}
				p.quiet()
			}
			one.stop()
			two.stop()
		}
	}, "nft")
}

// A peer behind a router that masquerades: without a mapped port it is a member by half, which both ends say, and
// serves its clients all the same. With one it is a member as all others. Then the router forgets UDP for a while.
func TestStreetMasquerade(t *testing.T) {
	onTheStreet(t, func(s *street) {
		const wan, lan = "10.0.0.", "192.168.7."
		s.machines("a", "router", "b")
		s.wire("wan", "a "+wan+"1/24", "router "+wan+"9/24", "- "+wan+"8/24")
		s.wire("lan", "router "+lan+"1/24", "b "+lan+"2/24", "- "+lan+"8/24")
		s.finish(machine("b").command("ip", "route", "add", "default", "via", lan+"1"))
		s.finish(machine("router").command("sysctl", "-qw", "net.ipv4.ip_forward=1"))
		s.nft("router", `table ip nat {
	chain in { type nat hook prerouting priority -100; iifname "wan" tcp dport { 3030, 7030 } dnat to 192.168.7.2; iifname "wan" udp dport 7030 dnat to 192.168.7.2; }
	chain out { type nat hook postrouting priority 100; oifname "wan" masquerade; }
}`)
		o := s.origin(wan+"8:80", nil)
		from := func(path string) string { return wan + "8:80 " + wan + "8" + path }
		origin := []string{"--origin", "http://" + wan + "8"}
		a := s.peer("a", "a", wan+"1", origin...)
		b := s.peer("b", "b", lan+"2", append(origin, "--join", a.gossip)...)
		half := func(p *process, name string) func() bool {
			return func() bool {
				h := p.status()
				return h.Exchange.Half > 0 && strings.Contains(fmt.Sprint(h.Health.Degraded), name)
			}
		}
		took := eventually(s.T, 2*time.Minute, "a calls b a member by half", half(a, "b"))
		took += eventually(s.T, 2*time.Minute, "b calls a a member by half", half(b, "a"))
		s.Logf("named at both ends after %v", took.Round(time.Second))
		for _, p := range []*process{a, b} {
			for i := range 10 {
				s.gets(p, fmt.Sprint("/", i), 200, from(fmt.Sprint("/", i)))
			}
		}
		if code, _, _ := s.from(b.admin, "/readyz"); code.Get("Status") != "200" {
			s.Errorf("b is not ready: %v", code)
		}
		b.stop()
		b = s.peer("b", "b", lan+"2", append(origin, "--join", a.gossip, "--advertise", wan+"9")...)
		eventually(s.T, time.Minute, "a sees b", func() bool { m, ok := a.member("b"); return ok && m.State == "alive" })
		s.gets(a, "/from-a", 200, from("/from-a"))
		s.gets(b, "/from-b", 200, from("/from-b"))
		siblings := func(step string) {
			s.Helper()
			eventually(s.T, time.Minute, step+": they know each other", func() bool {
				m, ok := a.member("b")
				n, back := b.member("a")
				return ok && back && m.Current && n.Current && m.State == "alive" && n.State == "alive" &&
					m.Keys >= uint64(b.status().Store.Objects) && n.Keys >= uint64(a.status().Store.Objects)
			})
			for of, p := range map[string]*process{"/from-a": b, "/from-b": a} {
				s.gets(p, of, 200, from(of))
				if n := o.count(of); n != 1 {
					s.Errorf("%s: %s was asked for %d times at the origin", step, of, n)
				}
			}
			eventually(s.T, time.Minute, step+": nobody is a member by half",
				func() bool { return a.status().Exchange.Half == 0 && b.status().Exchange.Half == 0 })
		}
		siblings("with mapped ports")
		s.nft("router", "table ip closed { chain c { type filter hook forward priority 0; meta l4proto udp drop; }; }")
		took = eventually(s.T, 2*time.Minute, "UDP is closed, and a says so", half(a, "b"))
		s.Logf("UDP closed: named after %v", took.Round(time.Second))
		for i := range 10 {
			s.gets(b, fmt.Sprint("/closed", i), 200, from(fmt.Sprint("/closed", i)))
			s.gets(a, fmt.Sprint("/closed", i), 200, from(fmt.Sprint("/closed", i)))
		}
		s.finish(machine("router").command("nft", "delete", "table", "ip", "closed"))
		siblings("UDP is open again")
	}, "nft")
}

// A peer is stopped for a while and goes on with stale knowledge. Its siblings serve on; what was purged meanwhile is
// not called purged there, and nobody gets it from there.
func TestStreetStandstill(t *testing.T) {
	onTheStreet(t, func(s *street) {
		var version atomic.Int64
		o := s.origin("127.0.0.1:80", func(r *http.Request) string {
			return fmt.Sprintf("%s version %d", r.URL.Path, version.Load())
		})
		a := s.peer("", "a", "127.0.0.1", "--origin", "http://127.0.0.1")
		b := s.peer("", "b", "127.0.0.1", "--origin", "http://127.0.0.1", "--join", a.gossip)
		c := s.peer("", "c", "127.0.0.1", "--origin", "http://127.0.0.1", "--join", a.gossip)
		const n = 30
		for i := range n {
			s.gets(b, fmt.Sprint("/", i), 200, fmt.Sprintf("/%d version 0", i))
		}
		for _, p := range []*process{a, c} {
			eventually(s.T, time.Minute, p.name+" knows what b holds", func() bool {
				m, _ := p.member("b")
				return m.Current && m.Keys == n
			})
		}
		b.cmd.Process.Signal(syscall.SIGSTOP)
		defer b.cmd.Process.Signal(syscall.SIGCONT)
		began := time.Now()
		slowest := time.Duration(0)
		for i := range n / 3 { // what b holds, and cannot give
			at := time.Now()
			s.gets(a, fmt.Sprint("/", i), 200, fmt.Sprintf("/%d version 0", i))
			slowest = max(slowest, time.Since(at))
		}
		version.Store(1)
		socket := a.status().Addresses.Socket
		purged, err := admin.Client(socket).Purge(s.Context(), admin.PurgeRequest{URL: "/", Prefix: true, Everywhere: true},
			"")
		if err == nil && purged.Failed() == 0 && time.Since(began) < 20*time.Second {
			s.Errorf("the purge is called done while b stands still: %+v", purged)
		}
		s.Logf("the purge: %+v", purged)
		eventually(s.T, 2*time.Minute, "a and c know that b is gone", func() bool {
			m, _ := a.member("b")
			k, _ := c.member("b")
			return m.State != "alive" && k.State != "alive"
		})
		for i := range n {
			s.gets(a, fmt.Sprint("/", i), 200, fmt.Sprintf("/%d version 1", i))
		}
		rest := 20 * time.Second
		if *long {
			rest = 4 * time.Minute
		}
		time.Sleep(max(0, rest-time.Since(began)))
		b.cmd.Process.Signal(syscall.SIGCONT)
		stood := time.Since(began)
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			for i := range n {
				s.gets(a, fmt.Sprint("/", i), 200, fmt.Sprintf("/%d version 1", i))
				s.gets(c, fmt.Sprint("/", i), 200, fmt.Sprintf("/%d version 1", i))
			}
		}
		took := eventually(s.T, time.Minute, "b is back", func() bool {
			m, _ := a.member("b")
			k, _ := b.member("a")
			return m.State == "alive" && k.State == "alive" && m.Current && k.Current
		})
		old := 0
		for i := range n {
			if _, body, _ := s.from(b.listen, fmt.Sprint("/", i)); strings.HasSuffix(body, "version 0") {
				old++
			}
		}
		s.Logf("b stood still for %v and is back after %v; a request for what it held took at most %v; b itself serves %d of %d purged objects", stood.Round(time.Second), took.Round(time.Second), slowest.Round(time.Millisecond), old, n)
		if old > 0 {
			s.Errorf("b serves %d objects that were purged while it stood still", old)
		}
		for i := range n {
			s.gets(c, fmt.Sprint("/", i), 200, fmt.Sprintf("/%d version 1", i))
		}
		s.Logf("%d requests at the origin", o.count(""))
	})
}
