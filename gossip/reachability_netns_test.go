//go:build linux

package gossip

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// nft gives the machine of a peer a rule of its firewall.
func (p *peerProcess) nft(hook, rule string) {
	p.t.Helper()
	kind := map[bool]string{true: "nat", false: "filter"}[hook != "input"]
	for _, command := range []string{"add table inet t", fmt.Sprintf("add chain inet t %s { type %s hook %s priority 0 ; }", hook, kind, hook), "add rule inet t " + hook + " " + rule} {
		if out, err := exec.Command("ip", "netns", "exec", p.space, "nft", command).CombinedOutput(); err != nil {
			p.t.Fatalf("nft %s: %v: %s", command, err, out)
		}
	}
}

// says waits until the answer to a line is as it is wanted.
func (p *peerProcess) says(line string, within time.Duration, want func(answer string) bool) time.Duration {
	p.t.Helper()
	return eventually(p.t, within, func() error {
		if got := strings.TrimSpace(p.ask(line)); !want(got) {
			return fmt.Errorf("%s says %q of %s", p.name, got, line)
		}
		return nil
	})
}

func has(part string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, part) }
}
func is(all string) func(string) bool { return func(s string) bool { return s == all } }

// TestHalfMembersInNamespaces: real networks in which a member is one only by half, or that look as if it were.
func TestHalfMembersInNamespaces(t *testing.T) {
	if !*netns {
		t.Skip("give -netns to run it; it needs root, iproute2 and nftables")
	}
	const drop = "udp dport 7946 drop"
	three := func(t *testing.T, before func(c *peerProcess)) []*peerProcess {
		peers := lab(t, 3)
		if before != nil {
			before(peers[2])
		}
		peers[0].start("")
		peers[1].start(peers[0].ip)
		peers[2].start(peers[0].ip)
		return peers
	}
	named := func(t *testing.T, a, c *peerProcess) {
		took := a.says("half", time.Minute, has("p3 "))
		took += c.says("half", time.Minute, has("p1 "))
		t.Logf("named at both ends after %v", took)
	}
	t.Run("UDP closed before it joins", func(t *testing.T) {
		peers := three(t, func(c *peerProcess) { c.nft("input", drop) })
		named(t, peers[0], peers[2])
	})
	t.Run("UDP closed afterwards", func(t *testing.T) {
		peers := three(t, nil)
		peers[0].says("members", 20*time.Second, is("[p2 alive p3 alive]"))
		peers[2].nft("input", drop)
		named(t, peers[0], peers[2])
	})
	t.Run("two at one address, one after the other", func(t *testing.T) {
		peers := three(t, nil)
		peers[0].says("members", 20*time.Second, is("[p2 alive p3 alive]"))
		peers[1].says("members", 20*time.Second, is("[p1 alive p3 alive]"))
		peers[2].cmd.Process.Kill()
		peers[2].cmd.Wait()
		peers[2].name = "p4"
		peers[2].start(peers[0].ip)
		for _, p := range peers[:2] {
			took := p.says("members", 20*time.Second, func(s string) bool { return strings.Contains(s, "p3 dead p4 alive") })
			t.Logf("%s says so after %v", p.name, took)
		}
	})
	t.Run("one family only", func(t *testing.T) { // p3 has both, and the others IPv6 alone
		peers := lab(t, 3)
		for i, p := range peers {
			if err := exec.Command("ip", "netns", "exec", p.space, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0").Run(); err != nil {
				t.Skip("no IPv6 here")
			}
			ip(t, "-n", p.space, "-6", "addr", "add", fmt.Sprintf("fd00:9::%d/64", i+1), "dev", "eth0", "nodad")
			p.env = []string{"GOSSIP_BIND=:7946"}
			if i < 2 {
				ip(t, "-n", p.space, "addr", "del", p.ip+"/24", "dev", "eth0")
			}
		}
		peers[0].start("")
		peers[1].start("[fd00:9::1]")
		peers[2].start("[fd00:9::1]")
		for _, p := range peers[:2] {
			p.says("members", 20*time.Second, has("p3 alive"))
			p.says("half", 10*time.Second, is("[]"))
		}
	})
	for name, advertise := range map[string]string{"a mapped port": "10.99.0.3:17946", "a mapped port that nobody told it of": ""} {
		t.Run(name, func(t *testing.T) {
			peers := lab(t, 3)
			router := peers[2]
			inner := &peerProcess{t: t, name: "p3", space: fmt.Sprintf("gossip%d-inner", os.Getpid()), ip: "10.98.0.2"}
			ip(t, "netns", "add", inner.space)
			t.Cleanup(func() { exec.Command("ip", "netns", "del", inner.space).Run() })
			ip(t, "-n", router.space, "link", "add", "in0", "type", "veth", "peer", "name", "eth0", "netns", inner.space)
			ip(t, "-n", router.space, "addr", "add", "10.98.0.1/24", "dev", "in0")
			ip(t, "-n", router.space, "link", "set", "in0", "up")
			ip(t, "-n", inner.space, "addr", "add", "10.98.0.2/24", "dev", "eth0")
			ip(t, "-n", inner.space, "link", "set", "eth0", "up")
			ip(t, "-n", inner.space, "link", "set", "lo", "up")
			ip(t, "-n", inner.space, "route", "add", "default", "via", "10.98.0.1")
			if out, err := exec.Command("ip", "netns", "exec", router.space, "sysctl", "-qw", "net.ipv4.ip_forward=1").CombinedOutput(); err != nil {
				t.Skipf("no forwarding here: %s", out)
			}
			router.nft("prerouting", "iifname eth0 meta l4proto { tcp, udp } th dport 17946 dnat ip to 10.98.0.2:7946")
			router.nft("postrouting", "oifname eth0 masquerade")
			peers[0].start("")
			peers[1].start(peers[0].ip)
			if advertise != "" {
				inner.env = []string{"GOSSIP_ADVERTISE=" + advertise}
			}
			inner.start(peers[0].ip)
			if advertise == "" {
				named(t, peers[0], inner)
				return
			}
			for _, p := range peers[:2] {
				p.says("members", 30*time.Second, has("p3 alive"))
			}
			inner.says("members", 30*time.Second, is("[p1 alive p2 alive]"))
			time.Sleep(25 * time.Second)
			for _, p := range []*peerProcess{peers[0], peers[1], inner} {
				p.says("half", time.Second, is("[]"))
			}
			fmt.Fprintln(inner.in, "leave")
			for _, p := range peers[:2] {
				p.says("members", 10*time.Second, has("p3 left"))
			}
		})
	}
}
