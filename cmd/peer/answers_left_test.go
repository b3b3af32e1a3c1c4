//go:build unix

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
)

var leftBehind = flag.Int("left-behind", 0, "send so many requests to an origin and a sibling that leave bytes behind each answer; 0: some hundred")

// leavingAnswer is answer n of an origin that leaves an answer behind each of its own, in one write.
func leavingAnswer(n int) *answer {
	a := &answer{n: n, method: "GET", version: "HTTP/1.1 ", status: "200", reason: " OK", eol: "\r\n", framing: "length",
		body: "for " + mark(n), behind: second(n), kinds: []string{"surplus"}}
	control := []string{"Cache-Control: max-age=600", "Cache-Control: no-store"}[n/6%2]
	a.lines = []string{"X-For: " + mark(n), "Content-Type: text/plain", control}
	switch n % 6 {
	case 0:
		a.status, a.body, a.framing = "204", "", "none"
	case 1:
		a.status, a.body, a.framing = "304", "", "none"
	case 2:
		a.method, a.payload = "HEAD", new(string)
	case 3:
		a.framing = "chunks"
	case 4:
		a.body = ""
	}
	return a
}

// askAll sends requests over 64 connections, and fails if one gets other bytes than those for its URL.
func askAll(t *testing.T, addr, host string, numbers []int, answer func(n int) *answer) {
	t.Helper()
	var clients sync.WaitGroup
	var foreign, passed atomic.Int64
	for w := range 64 {
		clients.Go(func() {
			k := &asker{addr: addr, host: host, limit: answerLimit}
			defer k.close()
			for i := w; i < len(numbers); i += 64 {
				a := answer(numbers[i])
				got := k.ask(a.method, a.n)
				switch what, detail := got.wrong(a, judge(a.method, a.raw(), false)); {
				case what == "":
					passed.Add(1)
				case foreign.Add(1) <= 5:
					t.Errorf("%s: %s %s\n%v", what, detail, cmp.Or(got.body, fmt.Sprint(got.status, got.err)), a)
				}
			}
		})
	}
	clients.Wait()
	t.Logf("%d requests over 64 connections: %d got what is theirs, %d did not", len(numbers), passed.Load(), foreign.Load())
}

// TestBytesLeftBehind sends requests over many connections to an origin that leaves a good answer, to
// nobody's request, behind each answer: 204, 304, HEAD, by length, and in chunks. RFC 9112, section 6.3,
// forbids to process, cache or forward it.
func TestBytesLeftBehind(t *testing.T) {
	var numbers []int
	for n := range cmp.Or(*leftBehind, 600) {
		numbers = append(numbers, n)
	}
	f := answerPeers(t, 1, leavingAnswer)
	askAll(t, f.addr(nil), f.lanes[0].host, numbers, leavingAnswer)
	if seen := f.lanes[0].settle(-1); seen != 0 || len(f.lanes[0].seen) < len(numbers)/2 {
		t.Errorf("the origin saw %d URLs, want %d", len(f.lanes[0].seen), len(numbers))
	}
}

// An advertised listener says that it is at another address.
type advertised struct {
	net.Listener
	at net.Addr
}

func (l advertised) Addr() net.Addr { return l.at }

// leaving passes requests on to a peer, and leaves an answer behind each of its own.
func leaving(t *testing.T, from net.Listener, to string) (left *atomic.Int64) {
	left = new(atomic.Int64)
	pass := func(c net.Conn) {
		defer c.Close()
		peer, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer peer.Close()
		in, back := bufio.NewReader(c), bufio.NewReader(peer)
		for {
			r, err := http.ReadRequest(in)
			if err != nil || r.Write(peer) != nil {
				return
			}
			answer, err := http.ReadResponse(back, r)
			if err != nil {
				return
			}
			var all bytes.Buffer
			if answer.Write(&all) != nil {
				return
			}
			c.Write(append(all.Bytes(), second(int(left.Add(1)))...))
		}
	}
	t.Cleanup(func() { from.Close() })
	go func() {
		for {
			c, err := from.Accept()
			if err != nil {
				return
			}
			go pass(c)
		}
	}()
	return left
}

// TestBytesLeftBehindBySiblings is the same with a sibling that leaves an answer behind each of its own.
func TestBytesLeftBehindBySiblings(t *testing.T) {
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	left := leaving(t, outside, inside.Addr().String())
	kept := func(n int) *answer {
		a := leavingAnswer(n)
		a.behind, a.kinds, a.lines[2] = "", nil, "Cache-Control: max-age=600"
		if a.status == "304" { // which is not asked of siblings
			a.status, a.framing, a.body = "404", "length", "for "+mark(n)
		}
		a.method, a.payload = "GET", nil
		return a
	}
	l := newLane(t, "lane.test", kept)
	sites := []proxy.Site{{Hosts: []string{l.host}, Origins: []*url.URL{{Scheme: "http", Host: l.addr}}}}
	pair := startPair(t, sites, advertised{inside, outside.Addr()})
	var numbers []int
	for n := range cmp.Or(*leftBehind, 600) {
		numbers = append(numbers, n)
	}
	askAll(t, inside.Addr().String(), l.host, numbers, kept)
	settlePair(t, pair)
	askAll(t, pair[1].Addresses().Listen, l.host, numbers, func(n int) *answer {
		a := kept(n)
		if n%6 == 2 {
			a.method = "HEAD"
		}
		return a
	})
	twice := 0
	for _, n := range l.seen {
		twice += n - 1
	}
	if left.Load() < int64(len(numbers))/10 { // a busy sibling's are asked of the origin
		t.Errorf("%d of %d requests reached the sibling, %d the origin", left.Load(), len(numbers), twice)
	}
}
