//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
)

// mutated is the number of requests in the comparison; 0 = a few.
var mutated = flag.Int("mutated", 0, "compare parsers on so many mutated requests, and fail where nginx or squid is not installed")

// TestParsersAgree sends the same bytes, requests mutated in the ways of request smuggling, to a
// peer, nginx and Squid, and compares the requests that reach an origin behind each of them. One
// may refuse what another accepts. Requests that both accept must be equal in method, target and
// body, and nothing may be a request to one and part of a body to another.
func TestParsersAgree(t *testing.T) {
	cases := *mutated
	if cases == 0 {
		cases = 300
	}
	peer := &front{name: "peer", sink: newSink(t), silence: silence}
	peer.addr = parsingPeer(t, peer.sink.addr())
	fronts := []*front{peer, parsingNginx(t), parsingSquid(t)}
	rng := rand.New(rand.NewPCG(18, 7))
	seen, both := 0, map[string]int{}
	for i := range cases {
		raw := mutate(rng, i)
		saw := make([][]seenRequest, len(fronts))
		var all sync.WaitGroup
		for k, f := range fronts {
			all.Go(func() { saw[k] = f.send(t, i, raw) })
		}
		all.Wait()
		seen += len(saw[0])
		for k, other := range fronts[1:] {
			n, difference := meanings(saw[0], saw[k+1])
			both[other.name] += n
			if difference != "" {
				t.Errorf("case %d: %s\n%.900q\nbehind the peer  %.600q\nbehind %s %.600q", i, difference, raw, saw[0], other.name, saw[k+1])
			}
		}
	}
	t.Logf("%d cases; the peer passed on %d requests; both it and nginx %d, both it and squid %d", cases, seen, both["nginx"], both["squid"])
	if seen < cases/4 || both["nginx"] < cases/8 || both["squid"] < cases/8 {
		t.Error("most are refused: nothing is compared")
	}
}

// meanings compares the requests seen behind two fronts: how many both understood alike, and which
// were understood differently. A request that a front has refused is missing there, and no part of
// it may be taken for a request.
func meanings(a, b []seenRequest) (same int, difference string) {
	for range 2 {
		for _, x := range a {
			for _, y := range b {
				switch {
				case x.id() == "" || y.id() == "":
				case x.id() == y.id() && x == y:
					same++
				case x.id() == y.id():
					return same, fmt.Sprintf("%v and %v", x, y)
				case strings.Contains(y.body, x.id()) && !slices.Contains(a, y):
					return same, fmt.Sprintf("%v is in the body of %v", x, y)
				}
			}
		}
		a, b = b, a
	}
	return same / 2, ""
}

// The comparison detects a smuggled request.
func TestMeanings(t *testing.T) {
	one, two := seenRequest{"POST", "/1-0", "hello"}, seenRequest{"GET", "/1-9", ""}
	for _, tt := range []struct {
		name string
		a, b []seenRequest
		same int
		bad  bool
	}{
		{"the same", []seenRequest{one, two}, []seenRequest{one, two}, 2, false},
		{"one refused", []seenRequest{two}, []seenRequest{one, two}, 1, false},
		{"one that goes no further", []seenRequest{one}, []seenRequest{one, two}, 1, false},
		{"another body", []seenRequest{one, two}, []seenRequest{{"POST", "/1-0", "hell"}, two}, 0, true},
		{"another target", []seenRequest{one}, []seenRequest{{"POST", "/1-0?x", "hello"}}, 0, true},
		{"a request in a body", []seenRequest{one, two}, []seenRequest{{"POST", "/1-1", "GET /1-9 HTTP/1.1"}}, 0, true},
		{"a body behind both that looks like a request", []seenRequest{{"POST", "/1-0", "GET /1-0-smuggled"}}, []seenRequest{{"POST", "/1-0", "GET /1-0-smuggled"}, two}, 1, false},
		{"a body that is a request behind one", []seenRequest{{"GET", "/1-0-smuggled", ""}}, []seenRequest{{"POST", "/1-0", "GET /1-0-smuggled"}}, 0, true},
	} {
		same, difference := meanings(tt.a, tt.b)
		if (difference != "") != tt.bad || !tt.bad && same != tt.same {
			t.Errorf("%s: %d the same, %q", tt.name, same, difference)
		}
	}
}

// A seenRequest is a request that reached an origin.
type seenRequest struct{ method, target, body string }

// id returns the case of a request and its number in that case; "" = unknown.
func (r seenRequest) id() string { return ofCase.FindString(r.target) }

// A front is a proxy with its own origin.
type front struct {
	name, addr string
	sink       *sink
	silence    time.Duration // for which to wait for a front that sends nothing more
}

// silence is that of a front which may be waiting for the rest of a request. If it is only late, less
// is compared.
const silence = 150 * time.Millisecond

// ofCase returns the part of a target that names the case.
var ofCase = regexp.MustCompile(`/(\d+)-\d(-smuggled)?`)

// send sends the bytes of a case to the front, and returns what its origin saw of it.
func (f *front) send(t *testing.T, i int, raw []byte) (seen []seenRequest) {
	t.Helper()
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Errorf("%s: %v", f.name, err)
		return nil
	}
	defer c.Close()
	c.Write(raw)
	for buf := make([]byte, 4096); err == nil; { // until it is silent or closed; an answer of each request ends
		c.SetReadDeadline(time.Now().Add(f.silence))
		_, err = c.Read(buf)
	}
	c.Close()
	for _, s := range f.sink.take() {
		if m := ofCase.FindStringSubmatch(s.target); m == nil || m[1] == strconv.Itoa(i) { // not a late one of another
			seen = append(seen, s)
		}
	}
	return seen
}

// A sink is an origin that records each complete request.
type sink struct {
	l net.Listener

	mu   sync.Mutex
	busy int
	idle *sync.Cond
	got  []seenRequest
}

func newSink(t *testing.T) *sink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{l: l}
	s.idle = sync.NewCond(&s.mu)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return s
}

func (s *sink) addr() string { return s.l.Addr().String() }

// serve reads requests. Those from a proxy must be in plain form.
func (s *sink) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		if _, err := in.Peek(1); err != nil {
			return
		}
		s.work(1)
		c.SetReadDeadline(time.Now().Add(time.Second)) // what a front gave up in the middle
		r, err := http.ReadRequest(in)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(r.Body)
		}
		if err != nil {
			s.work(-1)
			return
		}
		c.SetReadDeadline(time.Time{})
		s.mu.Lock()
		// Squid writes methods that it knows in capitals, however they came.
		s.got = append(s.got, seenRequest{strings.ToUpper(r.Method), r.RequestURI, string(body)})
		s.mu.Unlock()
		_, err = io.WriteString(c, "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok")
		s.work(-1)
		if err != nil || r.Close {
			return
		}
	}
}

func (s *sink) work(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy += n
	s.idle.Broadcast()
}

// take returns the requests since the last call, once no more arrive.
func (s *sink) take() []seenRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy > 0 { // a second each at most, see serve
		s.idle.Wait()
	}
	got := s.got
	s.got = nil
	return got
}

func parsingPeer(t *testing.T, origin string) string {
	t.Helper()
	n, err := node.Start(context.Background(), node.Options{Logger: slog.New(slog.DiscardHandler), Config: config.Config{
		Name: "p", Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Gossip: "127.0.0.1:0", Store: t.TempDir(), StoreSize: 64 << 20,
		Objects: 1000, FalsePositives: 0.001, Origin: &url.URL{Scheme: "http", Host: origin},
		ClientBodyTimeout: time.Second, FirstByteTimeout: 5 * time.Second,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n.Addresses().Listen
}

func parsingSquid(t *testing.T) *front {
	t.Helper()
	s := newSink(t)
	host, port, _ := net.SplitHostPort(s.addr())
	addr := freeAddr(t)
	squid := startSquid(t, squidSetup{addr: addr, whole: []string{"http_port " + addr + " accel defaultsite=a no-vhost",
		"cache_peer " + host + " parent " + port + " 0 no-query no-digest originserver", "never_direct allow all", "cache deny all",
		"visible_hostname squid", "read_timeout 2 seconds", "request_timeout 1 second", "client_idle_pconn_timeout 1 second"}})
	return &front{"squid", squid.addr, s, silence}
}

func parsingNginx(t *testing.T) *front {
	t.Helper()
	s, addr := newSink(t), freeAddr(t)
	startNginx(t, addr, fmt.Sprintf(`
	client_body_timeout 1s; client_header_timeout 1s; keepalive_timeout 1s; lingering_timeout 1s; lingering_close off;
	server { listen %s; location / { proxy_pass http://%s; } }`, addr, s.addr()))
	return &front{"nginx", addr, s, silence}
}

// mutate returns the bytes of case i: one to three requests, most of them with one or two features
// that parsers have been known to interpret differently.
func mutate(rng *rand.Rand, i int) []byte {
	var b bytes.Buffer
	for j := range 1 + rng.IntN(3) {
		b.Write(request(rng, fmt.Sprintf("/%d-%d", i, j)))
	}
	raw := b.Bytes()
	for range max(0, rng.IntN(5)-3) { // and anything at all
		if len(raw) == 0 {
			break
		}
		switch at := rng.IntN(len(raw)); rng.IntN(3) {
		case 0:
			raw[at] = oddBytes[rng.IntN(len(oddBytes))]
		case 1:
			raw = append(raw[:at:at], raw[at+1:]...)
		case 2:
			raw = append(append(raw[:at:at], oddBytes[rng.IntN(len(oddBytes))]), raw[at:]...)
		}
	}
	return append(raw[:len(raw):len(raw)], fmt.Sprintf("GET /%d-9 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", i)...)
}

const oddBytes = "\r\n\t\x00\x0b\x0c \xa0\x7f:,;=+-0x1aA\"#%"

// pick returns the first choice in most cases, and otherwise any.
func pick(rng *rand.Rand, options ...string) string {
	if rng.IntN(20) > 0 {
		return options[0]
	}
	return options[rng.IntN(len(options))]
}

// request returns one request. Bodies contain what would be a request if it were read as one.
func request(rng *rand.Rand, path string) []byte {
	body := pick(rng, "hello", "GET"+" "+path+"-smuggled HTTP/1.1\r\nHost: a\r\n\r\n", "", "0\r\n\r\n")
	method := pick(rng, "POST", "PUT", "GET", "DELETE", "PATCH", "OPTIONS", "post")
	eol := pick(rng, "\r\n", "\n", "\r", "\r\r\n", " \r\n")
	fields := []string{"Host" + pick(rng, ":", " :", "\t:", "") + " " + pick(rng, "a", "a:80", "b", "a, b", "a\r\nHost: b", "")}
	length := fmt.Sprint(len(body))
	lengths := func() string {
		n := len(body)
		return pick(rng, length, "+"+length, "-"+length, "0"+length, length+" ", " "+length, length+","+length, length+", "+length, fmt.Sprint(n, ",", n+1),
			fmt.Sprint(n+1), fmt.Sprint(max(0, n-1)), "0x"+length, length+".0", length+"\x00", length+"\t", "1e1", "18446744073709551616", fmt.Sprint(uint64(1<<32)+uint64(n)), "")
	}
	sized := func() string {
		return pick(rng, "Content-Length", "content-length", "Content-Length ", "Content_Length", " Content-Length", "Content-Length\t", "Content-Length\x00") + ":" + pick(rng, " ", "", "\t", "\x0b", "\r\n ") + lengths()
	}
	coded := func() string {
		return pick(rng, "Transfer-Encoding", "transfer-encoding", "Transfer-Encoding ", "Transfer_Encoding", " Transfer-Encoding", "Transfer-Encoding\x0b") + ":" + pick(rng, " ", "", "\t", "\x0b", "\r\n ", "\n ") +
			pick(rng, "chunked", "Chunked", "chunked ", "chunked\t", "\"chunked\"", "xchunked", "chunked, identity", "identity, chunked", "gzip, chunked", "chunked, chunked", ",chunked", "chunked,", "chunked;q=1", "identity", "chunked\x00", "chun\x0bked", "")
	}
	payload := body
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		fields = append(fields, sized())
	case 4, 5, 6, 7, 8:
		fields = append(fields, coded())
		payload = chunks(rng, body)
	case 9, 10: // both, in any order
		fields = append(fields, coded(), sized())
		if rng.IntN(2) == 0 {
			fields[1], fields[2] = fields[2], fields[1]
		}
		if rng.IntN(2) == 0 {
			payload = chunks(rng, body)
		}
	case 11: // twice
		one := []func() string{sized, coded}[rng.IntN(2)]
		fields = append(fields, one(), one())
		if strings.Contains(strings.ToLower(fields[1]), "ncoding") {
			payload = chunks(rng, body)
		}
	}
	switch rng.IntN(24) {
	case 0:
		fields = append(fields, pick(rng, "X-A: b\r\n c", "X-A b", ": c", "X-\x01: b", "X-A: \x00", "X-A: b\rc", "X-A: b\nX-B: c", "Connection: close", "Connection: Content-Length", "Connection: Transfer-Encoding, keep-alive", "Expect: 100-continue", "Upgrade: h2c\r\nConnection: Upgrade"))
	case 1:
		rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	target := pick(rng, path, "http://a"+path, path+"?a=b", path+"#f", path+" x", "//a"+path, path+"\x00", "*", "a:80", path+"%0d%0aX:1", path+"/../x", path+"\tx", "http://b"+path)
	version := pick(rng, "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/0.9", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "HTTP/01.1", "HTTP/1.10", "")
	before := pick(rng, "", "\r\n", "\n", " ", "\x00")
	return []byte(before + method + pick(rng, " ", "  ", "\t") + target + pick(rng, " ", "  ", "\t") + version + eol + strings.Join(fields, eol) + eol + pick(rng, eol, "\r\n", "\n") + payload)
}

// chunks writes a body in chunks.
func chunks(rng *rand.Rand, body string) string {
	var b strings.Builder
	for body != "" {
		n := 1 + rng.IntN(len(body))
		size := fmt.Sprintf("%x", n)
		b.WriteString(pick(rng, size, strings.ToUpper(size), "0"+size, "000000000000000000000"+size, "0x"+size, "+"+size, " "+size, size+" ", size+"\t", "1000000000000000"+size, size+";a=b", size+" ;a", size+";a=\"\r\n\"", size+";a=\n", "-"+size, size+"\x00", fmt.Sprintf("%x", n+1)))
		b.WriteString(pick(rng, "\r\n", "\n", "\r", "\r\r\n", "\r\n\r\n"))
		b.WriteString(body[:n])
		b.WriteString(pick(rng, "\r\n", "\n", "\r", "", "xx", "\r\nx"))
		body = body[n:]
	}
	b.WriteString(pick(rng, "0", "00", "0;a=b", "0x0", "", "-0", "0 ") + pick(rng, "\r\n", "\n", "\r"))
	b.WriteString(pick(rng, "", "X-T: a\r\n", "Content-Length: 5\r\n", "Host: b\r\n", "bad\r\n"))
	return b.String() + pick(rng, "\r\n", "\n", "")
}

// HTTP/1.0 has no Transfer-Encoding: a request with one gets 400, and the connection ends (RFC 9112 section 6.1). Where it
// is not known whether a request had one, its connection ends after the answer. All others go on.
func TestCodedRequestsOfOldClients(t *testing.T) {
	s := newSink(t)
	addr := parsingPeer(t, s.addr())
	get := func(fields string) string {
		return "GET /1-0 HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n" + fields + "\r\n"
	}
	coded := get("Transfer-Encoding: chunked\r\n")
	type piece struct {
		raw     string
		answers int // that are awaited before the next piece
	}
	more := piece{get(""), 1}
	for _, tt := range []struct {
		what string
		sent []piece
		want []int // statuses of all answers until the connection ends
	}{
		{"none coded", []piece{more, more, more}, []int{200, 200, 200}},
		{"the first", []piece{{coded + "0\r\n\r\n", 1}, more}, []int{400}},
		{"a POST", []piece{{"POST" + coded[3:] + "0\r\n\r\n", 1}, more}, []int{400}},
		{"a PUT with a length", []piece{{"PUT" + get("Content-Length: 5\r\ntransfer-encoding: chunked\r\n")[3:] + "hello", 1}, more}, []int{400}},
		{"a later one", []piece{more, {coded, 1}, more}, []int{200, 400}},
		{"in pieces", []piece{more, {coded[:60], 0}, {coded[60:] + "0\r\n\r\n", 1}, more}, []int{200, 400}},
		{"behind another", []piece{{get("") + coded + "0\r\n\r\n", 2}, more}, []int{200, 200}},
		{"behind one of HTTP/1.1", []piece{{"GET /1-0 HTTP/1.1\r\nHost: a\r\n\r\n", 1}, {coded, 1}, more}, []int{200, 400}},
		{"a body, and another request", []piece{{"PUT" + get("Content-Length: 5\r\n")[3:] + "hello", 1}, more}, []int{200}},
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		answers := bufio.NewReader(c)
		var got []int
		for _, p := range tt.sent {
			io.WriteString(c, p.raw)
			for range p.answers {
				resp, err := http.ReadResponse(answers, nil)
				if err != nil {
					break
				}
				io.Copy(io.Discard, resp.Body)
				got = append(got, resp.StatusCode)
			}
		}
		if c.Close(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: answers %v, want %v", tt.what, got, tt.want)
		}
	}
}

// A body in HTTP/1.0 is passed on if its framing is unambiguous and it is the first on its
// connection, or behind plain requests, whose ends are known.
func TestBodiesOfHTTP(t *testing.T) {
	s := newSink(t)
	f := &front{"peer", parsingPeer(t, s.addr()), s, 20 * time.Second} // its connections end with the answers
	post := func(i int, fields string) string {
		return fmt.Sprintf("POST /1-%d HTTP/1.0\r\nHost: a\r\n%sContent-Length: 5\r\n\r\nhello", i, fields)
	}
	coded := post(1, "Transfer-Encoding: chunked\r\n")
	for _, tt := range []struct {
		raw  string
		seen int
	}{
		{post(0, ""), 1},
		{coded, 0},
		{post(0, "Connection: keep-alive\r\n") + coded, 1},
		{"GET /1-0 HTTP/1.1\r\nHost: a\r\n\r\n" + coded, 1},
		{"GET /1-0 HTTP/1.1\r\nHost: a\r\n\r\n" + post(1, ""), 2},
		{"GET /1-0 HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n" + post(1, ""), 1},
	} {
		if seen := f.send(t, 1, []byte(tt.raw)); len(seen) != tt.seen {
			t.Errorf("%q: the origin saw %v", tt.raw, seen)
		}
	}
}
