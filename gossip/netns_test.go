//go:build linux

package gossip

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

var netns = flag.Bool("netns", false, "run peers in network namespaces of their own; needs root and iproute2")

// peerProcess is a peer in a process and a network namespace of its own.
type peerProcess struct {
	t     *testing.T
	name  string
	space string // of the network
	ip    string
	env   []string // GOSSIP_BIND and GOSSIP_ADVERTISE, if they are not that of ip
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
}

// TestMain makes the test binary a peer if the environment says so.
func TestMain(m *testing.M) {
	if name := os.Getenv("GOSSIP_PEER"); name != "" {
		if err := runPeer(name, os.Getenv("GOSSIP_IP"), os.Getenv("GOSSIP_JOIN")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// view has the versions of a peer's own digest and of each replica.
type view map[string]digest.Version

// runPeer answers the lines "add N", "view", "half", "members" and "leave" on its standard input.
func runPeer(name, ip, join string) error {
	f, err := digest.NewSet(geometry(testSecret), 1)
	if err != nil {
		return err
	}
	cfg := Config{Name: name, Bind: cmp.Or(os.Getenv("GOSSIP_BIND"), ip+":7946"), Advertise: os.Getenv("GOSSIP_ADVERTISE"), Secret: testSecret, Service: ip + ":1", Holdings: NewHoldings(f), Logger: testLog(),
		detect: detection{probe: 500 * time.Millisecond}, rejoin: 2 * time.Second}
	if join != "" {
		cfg.Join = []string{join + ":7946"}
	}
	n, err := New(cfg)
	if err != nil {
		return err
	}
	defer n.Close()
	if err := n.Join(n.ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	next := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var add int
		if k, _ := fmt.Sscanf(lines.Text(), "add %d", &add); k == 1 {
			for range add {
				f.Add(key(name, next))
				next++
			}
			fmt.Println("ok")
			continue
		}
		switch lines.Text() {
		case "half":
			fmt.Println(n.Inside().HalfMembers())
			continue
		case "members":
			fmt.Println(n.states())
			continue
		case "leave":
			return n.Leave(context.Background())
		}
		v := view{name: f.Filter().Current().Version()}
		if f.Filter().Changed() > 0 {
			v[name] = digest.Version{} // not published yet
		}
		for peer, m := range *n.members.Load() {
			if use := m.inUse.Load(); use != nil && m.up.Load() {
				v[peer] = use.Version()
			}
		}
		b, _ := json.Marshal(v)
		fmt.Println(string(b))
	}
	return nil
}

// states returns the names of all members with their states, in order.
func (n *Node) states() (all []string) {
	for _, m := range n.Members() {
		state := map[bool]string{true: "alive", false: "dead"}[m.Alive]
		if m.Left {
			state = "left"
		}
		all = append(all, m.Name+" "+state)
	}
	slices.Sort(all)
	return all
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// lab makes a bridge in a namespace, and n namespaces with a link to it.
func lab(t *testing.T, n int) []*peerProcess {
	t.Helper()
	space := func(i int) string { return fmt.Sprintf("gossip%d-%d", os.Getpid(), i) }
	add := func(name string) {
		ip(t, "netns", "add", name)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
	}
	add(space(0))
	ip(t, "-n", space(0), "link", "add", "br0", "type", "bridge")
	ip(t, "-n", space(0), "link", "set", "br0", "up")
	var peers []*peerProcess
	for i := 1; i <= n; i++ {
		add(space(i))
		port, addr := fmt.Sprintf("port%d", i), fmt.Sprintf("10.99.0.%d", i)
		ip(t, "-n", space(0), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space(i))
		ip(t, "-n", space(0), "link", "set", port, "master", "br0", "up")
		ip(t, "-n", space(i), "addr", "add", addr+"/24", "dev", "eth0")
		ip(t, "-n", space(i), "link", "set", "lo", "up")
		ip(t, "-n", space(i), "link", "set", "eth0", "up")
		peers = append(peers, &peerProcess{t: t, name: fmt.Sprintf("p%d", i), space: space(i), ip: addr})
	}
	return peers
}

func (p *peerProcess) start(join string) {
	p.t.Helper()
	// The program after "exec" replaces ip, so that signals reach the peer.
	p.cmd = exec.Command("ip", "netns", "exec", p.space, os.Args[0])
	p.cmd.Env = append(os.Environ(), "GOSSIP_PEER="+p.name, "GOSSIP_IP="+p.ip, "GOSSIP_JOIN="+join)
	p.cmd.Env = append(p.cmd.Env, p.env...)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	if line, err := p.out.ReadString('\n'); line != "ready\n" {
		p.t.Fatalf("%s answers %q, %v", p.name, line, err)
	}
}

func (p *peerProcess) ask(line string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
	answer, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
	return answer
}

// agree checks that the replicas of all peers are the versions that each has published.
func agree(peers []*peerProcess) func() error {
	return func() error {
		views := make(map[string]view)
		for _, p := range peers {
			var v view
			if err := json.Unmarshal([]byte(p.ask("view")), &v); err != nil {
				return err
			}
			views[p.name] = v
		}
		for name, v := range views {
			for origin, w := range views {
				if w[origin] == (digest.Version{}) || v[origin] != w[origin] {
					return fmt.Errorf("%s holds %v of %s, want %v", name, v[origin], origin, w[origin])
				}
			}
		}
		return nil
	}
}

func TestNetworkNamespaces(t *testing.T) {
	if !*netns {
		t.Skip("give -netns to run it; it needs root and iproute2")
	}
	peers := lab(t, 5)
	for i, p := range peers {
		join := ""
		if i > 0 {
			join = peers[0].ip
		}
		p.start(join)
		p.ask("add 1000")
	}
	took := eventually(t, 20*time.Second, agree(peers))
	t.Logf("five peers in five namespaces were in step after %v", took)

	far := peers[4]
	ip(t, "-n", far.space, "link", "set", "eth0", "down")
	for _, p := range peers {
		p.ask("add 10")
	}
	eventually(t, 30*time.Second, agree(peers[:4]))
	gone := func() error {
		var v view
		if err := json.Unmarshal([]byte(peers[0].ask("view")), &v); err != nil {
			return err
		}
		if _, there := v[far.name]; there {
			return fmt.Errorf("%s is still a candidate", far.name)
		}
		return nil
	}
	took = eventually(t, 30*time.Second, gone)
	t.Logf("a peer whose link was cut was no candidate after %v", took)
	ip(t, "-n", far.space, "link", "set", "eth0", "up")
	took = eventually(t, 60*time.Second, agree(peers))
	t.Logf("in step %v after the link was mended", took)

	frozen := peers[2]
	frozen.cmd.Process.Signal(syscall.SIGSTOP)
	awake := append(append([]*peerProcess(nil), peers[:2]...), peers[3:]...)
	for _, p := range awake {
		p.ask("add 10")
	}
	far = frozen
	took = eventually(t, 30*time.Second, gone)
	t.Logf("a frozen peer was no candidate after %v", took)
	eventually(t, 30*time.Second, agree(awake))
	frozen.cmd.Process.Signal(syscall.SIGCONT)
	took = eventually(t, 60*time.Second, agree(peers))
	t.Logf("in step %v after it thawed", took)
}
