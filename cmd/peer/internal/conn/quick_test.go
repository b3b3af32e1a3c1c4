package conn

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// TestAtOnce checks which requests are answered at once, in whatever pieces they come, and that the server gets all
// others as they are, in their order.
func TestAtOnce(t *testing.T) {
	s := newQuickServer(t, Limits{}, nil)
	const hit, either, hidden = "at once /hit", "either /hit", "GET /hit HTTP/1.1\r\nHost: x\r\n\r\n"
	post := "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n"
	for _, test := range []struct {
		name  string
		sent  []string // each after the server has read the one before
		wants []string
	}{
		{"hits", []string{get("/hit"), get("/hit")}, []string{hit, hit}},
		{"a miss between hits", []string{get("/hit"), get("/m"), get("/hit")}, []string{hit, "at once /m", hit}},
		{"in one piece", []string{get("/hit") + get("/m") + get("/hit")}, []string{hit, "at once /m", hit}},
		{"one for the server", []string{get("/hit"), forServer("/s"), get("/hit"), get("/hit")}, []string{hit, "server /s ", either, either}},
		{"one for the server in one piece", []string{get("/hit") + get("/m") + forServer("/s") + get("/hit")}, []string{hit, "at once /m", "server /s ", either}},
		{"in two pieces", []string{"GET /hit HTTP/1.1\r\nHo", "st: x\r\n\r\n", get("/hit")}, []string{"server /hit ", either}},
		{"one and a half", []string{get("/hit") + "GET /h", "it HTTP/1.1\r\nHost: x\r\n\r\n", get("/hit")}, []string{hit, "server /hit ", either}},
		{"byte by byte", strings.Split(get("/hit"), ""), []string{"server /hit "}},
		{"a body like a request", []string{post, hidden, get("/hit")}, []string{"server /p " + hidden, "server /hit "}},
		{"a field like a request", []string{"GET /m HTTP/1.1\r\nHost: x\r\nA: b\r\n", "GET /hit HTTP/1.1\r\nHost: x\r\n\r\n"}, []string{"400 Bad Request"}},
		{"a name like a request", []string{"GET /m HTTP/1.1\r\nHost: x\r\nX", hidden}, []string{"400 Bad Request"}},
		{"after half a POST", []string{post[:20], post[20:] + hidden, get("/hit")}, []string{"server /p " + hidden, "server /hit "}},
		{"by HTTP/1.0", []string{"GET /hit HTTP/1.0\r\nHost: x\r\n\r\n"}, []string{"server /hit ", "unexpected EOF"}},
		{"the last one", []string{"GET /hit HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}, []string{"server /hit ", "unexpected EOF"}},
		{"kept alive", []string{"GET /hit HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\n\r\n"}, []string{hit}},
		{"aborted", []string{get("/abort")}, []string{"unexpected EOF"}},
		{"HTTP/0.9", []string{"GET /\r\n"}, []string{"400 Bad Request"}},
		{"HTTP/0.9 in pieces", []string{"GET", " /", "\n"}, []string{"400 Bad Request"}},
		{"a short line in pieces", []string{"GET / HTT", "P/1.1\r\n", "Host: x\r\n\r\n"}, []string{"server / "}},
		{"no host", []string{"GET /hit HTTP/1.1\r\n\r\n"}, []string{"400 Bad Request: missing required Host header"}},
		{"empty lines before", []string{"\r\n" + get("/hit"), "\r\n", "\n" + get("/hit")}, []string{hit, hit}},
		{"empty lines between", []string{get("/hit") + "\r\n" + get("/m") + "\r\n\r\n" + forServer("/s")}, []string{hit, "at once /m", "server /s "}},
		{"too many of them", []string{get("/hit") + strings.Repeat("\r\n", 5) + get("/hit")}, []string{hit, "400 Bad Request"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			c, in := s.connect()
			sent := s.read.Load()
			for _, piece := range test.sent {
				n, _ := io.WriteString(c, piece)
				sent += int64(n)
				s.until("a piece is read", func() bool { return s.read.Load() == sent })
			}
			for i, want := range test.wants {
				if got := answered(in); got != want && (want != either || got != hit && got != "server /hit ") {
					t.Errorf("answer %d is %q, want %q", i, got, want)
				}
			}
		})
	}
}

// TestFirstAtOnce checks that the first request of a connection is served at once, if it is one for that, in one piece and not
// too long, and that others reach the server as they are.
func TestFirstAtOnce(t *testing.T) {
	s := newQuickServer(t, Limits{}, nil)
	long := get("/" + strings.Repeat("m", mostFirst))
	post := "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
	for _, test := range []struct {
		sent  []string
		wants []string
	}{
		{[]string{get("/m"), get("/hit")}, []string{"at once /m", "at once /hit"}},
		{[]string{get("/m") + get("/hit") + post + get("/m")}, []string{"at once /m", "at once /hit", "server /p abc", "server /m "}},
		{[]string{forServer("/s")}, []string{"server /s "}},
		{[]string{post}, []string{"server /p abc"}},
		{[]string{long}, []string{"server " + strings.Fields(long)[1] + " "}},
		{[]string{"GET /m HTTP/1.", "1\r\nHost: x\r\n\r\n", get("/hit")}, []string{"at once /m", "at once /hit"}},
		{[]string{"GET /m HTTP/1.1", "\r\nHost: x\r\n\r\n"}, []string{"server /m "}},
		{[]string{"GET /m", " HTTP/1.1\r\nHost: x\r\n\r\n"}, []string{"server /m "}},
		{[]string{"\r\n" + get("/m")}, []string{"server /m "}},
	} {
		c, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		in := bufio.NewReader(c)
		sent, i := s.read.Load(), 0
		for _, piece := range test.sent {
			n, _ := io.WriteString(c, piece)
			sent += int64(n)
			s.until("a piece is read", func() bool { return s.read.Load() == sent })
			if strings.HasSuffix(piece, "\r\n\r\n") && len(test.sent) > 1 {
				if got := answered(in); got != test.wants[i] {
					t.Errorf("%.60q: answer %d is %.40q, want %.40q", test.sent, i, got, test.wants[i])
				}
				i++
			}
		}
		for ; i < len(test.wants); i++ {
			if got := answered(in); got != test.wants[i] {
				t.Errorf("%.60q: answer %d is %.40q, want %.40q", test.sent, i, got, test.wants[i])
			}
		}
		c.Close()
	}
}

// TestAtOnceIsCredited checks that requests which are served at once count for their address as others do.
func TestAtOnceIsCredited(t *testing.T) {
	s := newQuickServer(t, Limits{}, nil)
	c, in := s.connect()
	credit := s.gate.credit.of(prefixOf(c.LocalAddr().String()))
	credit.lose()
	for range 10 {
		io.WriteString(c, get("/hit"))
		answered(in)
	}
	if _, n := credit.at(time.Now()); n < 4 { // half of them, if a period has just ended
		t.Errorf("of ten answers at once %d count for their address", n)
	}
}

// TestAtOnceCounts checks that an answer at once takes the memory of a request while its client takes it, and that
// without that memory the server reads the request.
func TestAtOnceCounts(t *testing.T) {
	account := budget.New(64<<20).Open("requests", 0, 2*perRequest)
	s := newQuickServer(t, Limits{Conns: 10, PerHost: 9, Requests: account}, nil)
	c, in := s.connect()
	other, otherIn := s.connect() // of the same address, which may have half
	known(s.gate, 8, c.LocalAddr().String())
	s.until("the answers before hold nothing", func() bool { return account.Held() == 0 })
	io.WriteString(c, get("/long"))
	in.Peek(1)
	if got := account.Held(); got != perRequest {
		t.Errorf("an answer under way holds %d bytes, want %d", got, perRequest)
	}
	before := s.went.Load()
	io.WriteString(other, get("/hit")) // for which the other is cut, since nobody takes it
	if got := answered(otherIn); got != "server /hit " || s.went.Load() != before {
		t.Errorf("%q: is more answered at once than there is memory for?", got)
	}
	if got := answered(in); len(got) == s.long {
		t.Error("the long answer was not cut")
	}
	if got := account.Held(); got != 0 {
		t.Errorf("then %d bytes are held", got)
	}
	s.until("one connection is open", func() bool { open, _, _ := s.gate.Stats(); return open == 1 })
}

// TestAtOnceTimes checks that the server's limits hold after an answer at once: of the wait for a request, which
// begins anew with each, and of that for the rest of a header.
func TestAtOnceTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle, header = 600 * time.Millisecond, 300 * time.Millisecond
		clients := make(pipes)
		s := &quickServer{t: t, gate: NewGate(Limits{})}
		s.dial = func() (net.Conn, error) { here, there := net.Pipe(); clients <- there; return here, nil }
		s.serve(clients, func(s *http.Server) { s.IdleTimeout, s.ReadHeaderTimeout = idle, header })
		c, in := s.connect()
		for range 4 {
			time.Sleep(idle / 3)
			io.WriteString(c, get("/hit"))
			if got := answered(in); got != "at once /hit" {
				t.Fatalf("within the time: %q", got)
			}
		}
		begun := time.Now()
		if _, err := in.ReadByte(); err != io.EOF || time.Since(begun) < idle/4*3 || time.Since(begun) > idle {
			t.Errorf("without a request: %v after %v, want an end after %v", err, time.Since(begun), idle)
		}
		c, in = s.connect()
		io.WriteString(c, get("/hit")+"GET /hit HT")
		answered(in)
		begun = time.Now()
		if answer, err := io.ReadAll(in); err != nil || time.Since(begun) != header {
			t.Errorf("with half a header: %q, %v after %v, want an end after %v", answer, err, time.Since(begun), header)
		}
	})
}

// TestDrain checks that an answer at once is sent to its end while the server shuts down, unless it takes too long,
// and that no request is answered at once then.
func TestDrain(t *testing.T) {
	for _, patient := range []bool{true, false} {
		s := newQuickServer(t, Limits{}, nil)
		idle, idleIn := s.connect()
		c, in := s.connect()
		io.WriteString(c, get("/long"))
		in.Peek(1)
		limit := time.Minute
		if !patient {
			limit = 200 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			s.gate.CloseUnused()
			s.Shutdown(ctx)
			s.gate.Drain(ctx)
			ended <- ctx.Err()
		}()
		if _, err := idleIn.ReadByte(); err == nil {
			t.Error("an idle connection stays open")
		}
		idle.Close()
		if patient {
			select {
			case <-ended:
				t.Error("the server has shut down before the answer was sent")
			case <-time.After(100 * time.Millisecond):
			}
			if got := answered(in); len(got) != s.long {
				t.Errorf("%d bytes of the long answer: %.40q", len(got), got)
			}
			if _, err := in.ReadByte(); err == nil {
				t.Error("the connection stays open")
			}
		}
		if err := <-ended; (err == nil) != patient {
			t.Errorf("ended with %v", err)
		}
		if got := answered(in); len(got) == s.long {
			t.Error("a late answer is sent to its end")
		}
	}
}

// FuzzPlain checks that what counts as a plain request is one, of that length, for net/http as well, and is the same
// request.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{get("/"), get("http://a/b?c#d"), get("//x"), get("/%zz"), "GET / HTTP/1.1\r\nHost:\t x \r\nhost: y\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nA: 1\r\na: 2\r\nConnection: keep-alive\r\n\r\nrest", "GET / HTTP/1.1\r\nHost: x\r\nContent-length: 1\r\n\r\nx", "GET / HTTP/1.1\nHost: x\n\n",
		"GET / HTTP/1.1\r\nHost: x\r\n A: b\r\n\r\n", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x y\r\nX-Ä: ö\r\n\r\n", get("http://@a")} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var q plain
		size := q.frame(p)
		if size == 0 {
			return
		}
		blank := http.Request{Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}
		got := q.request(&blank, p[:size])
		in := bufio.NewReaderSize(bytes.NewReader(p), len(p)+16)
		want, err := http.ReadRequest(in)
		if err != nil {
			if got != nil {
				t.Fatalf("%q is a request, by net/http it is none: %v", p, err)
			}
			return
		}
		if read := len(p) - in.Buffered(); read != size {
			t.Fatalf("%q ends at %d, by net/http at %d", p, size, read)
		}
		if got == nil {
			return
		}
		if !reflect.DeepEqual(got.Header, want.Header) || !reflect.DeepEqual(got.URL, want.URL) || got.Host != want.Host || got.Method != want.Method ||
			got.RequestURI != want.RequestURI || got.Close != want.Close || want.ContentLength != 0 || len(want.TransferEncoding) > 0 || want.Trailer != nil {
			t.Fatalf("%q is\n%+v, by net/http\n%+v", p, got, want)
		}
	})
}

// TestBackToQuick checks after which requests that only the server could read others are answered at once again: when
// the next byte is the first of a request for certain. That is not known of a client that sends a request before it has
// the answer to one that the server reads: the server does not say when it goes on to the next that it has.
func TestBackToQuick(t *testing.T) {
	s := newQuickServer(t, Limits{}, nil)
	for _, test := range []struct {
		name    string
		sent    []string // each after the server has read the one before, while nothing is served at once
		answers int
		back    bool
	}{
		{"one", []string{get("/m")}, 1, true},
		{"in two pieces", []string{"GET /m HTTP/1.1\r\nHo", "st: x\r\n\r\n"}, 1, true},
		{"byte by byte", strings.Split(get("/m"), ""), 1, true},
		{"as long as is followed", []string{get("/" + strings.Repeat("m", mostBegun/2)), get("/" + strings.Repeat("m", mostBegun/2))}, 2, true},
		{"two misses in one piece", []string{get("/m") + get("/m")}, 2, false},
		{"a miss and a half", []string{get("/m") + "GET /m HT", "TP/1.1\r\nHost: x\r\n\r\n"}, 2, false},
		{"a POST", []string{"POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"}, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.t = t
			c, in := s.connect()
			s.not.Store(true)
			sent := s.read.Load()
			for _, piece := range test.sent {
				n, _ := io.WriteString(c, piece)
				sent += int64(n)
				s.until("a piece is read", func() bool { return s.read.Load() == sent })
			}
			for range test.answers {
				if got := answered(in); !strings.HasPrefix(got, "server /") && got != "at once /hit" {
					t.Fatalf("the answer is %q", got)
				}
			}
			s.not.Store(false)
			at := 0
			for range 200 {
				io.WriteString(c, get("/hit"))
				switch got := answered(in); got {
				case "at once /hit":
					at++
				case "server /hit ":
				default:
					t.Fatalf("the answer is %q", got)
				}
			}
			if back := at > 100; back != test.back {
				t.Errorf("of 200 requests then %d were answered at once, want more than half: %v", at, test.back)
			}
		})
	}
}

// TestFollowIsBounded checks that what the server gets of a request that is not plain is followed up to a bound, and
// that the next byte counts as the first of a request at no time.
func TestFollowIsBounded(t *testing.T) {
	for _, piece := range []int{1, 100, 1000, mostBegun} {
		q := &quick{elsewhere: true}
		q.follow([]byte("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"))
		followed := 0
		for ; q.begun != nil && followed <= 2*mostBegun; followed += piece {
			q.follow(make([]byte, piece))
		}
		if q.begun != nil || !q.elsewhere || followed > mostBegun+piece || followed < mostBegun-100 {
			t.Errorf("in pieces of %d bytes a POST is followed for %d bytes, the next may be elsewhere: %v", piece, followed, q.elsewhere)
		}
	}
}
