package conn

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A request of HTTP/1.0 is plain if its header has no Transfer-Encoding, however it comes in
// pieces; of other versions, of what is not over, and of what comes together with another, nothing is said.
func TestFramingOfHeaders(t *testing.T) {
	for _, c := range []struct {
		headers string // those of one connection, between which the server says that it waits for the next at each |
		want    []Framing
	}{
		{"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", []Framing{Coded}},
		{"POST / HTTP/1.0\r\nTransfer-Encoding : chunked\r\n\r\n", []Framing{Coded}},
		{"POST / HTTP/1.0\nTRANSFER-ENCODING:chunked\n\n", []Framing{Coded}},
		{"POST / HTTP/1.0\nTransfer-Encoding\n\n", []Framing{Coded}},
		{"\r\n\r\nPOST / HTTP/1.0\r\ntransfer-encoding: a\r\n\r\n", []Framing{Unknown}},
		{"POST / HTTP/1.0\r\nX-Transfer-Encoding: chunked\r\nA: Transfer-Encoding\r\n\r\n", []Framing{Plain}},
		{"POST / HTTP/1.0\r\nTransfer\rEncoding: chunked\r\nTransfer-Encodings: a\r\n\r\n", []Framing{Plain}},
		{"POST / HTTP/1.0\n\n", []Framing{Plain}},
		{"POST / HTTP/1.0\r\n\r\nTransfer-Encoding: chunked\r\n\r\n", []Framing{Plain}},
		{"POST / HTTP/1.0\r\nContent-Length: 5\r\n", []Framing{Unknown}},
		{"POST / HTTP/1.1\r\nHost: a\r\n\r\n", []Framing{Unknown}},
		{"POST /HTTP/1.0 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", []Framing{Unknown}},
		{"GET / HTTP/1.0\r\n\r\n|GET / HTTP/1.0\r\nTransfer-Encoding: a\r\n\r\n|GET / HTTP/1.0\r\n\r\n", []Framing{Plain, Coded, Plain}},
		{"GET / HTTP/1.1\r\n\r\n|GET / HTTP/1.0\r\nTransfer-Encoding: a\r\n\r\n", []Framing{Unknown, Unknown}},
	} {
		for size := 1; size <= len(c.headers); size++ {
			var s codedScan
			var got []Framing
			for header := range strings.SplitSeq(c.headers, "|") {
				s.next()
				for piece := range slices.Chunk([]byte(header), size) {
					s.piece(piece)
				}
				got = append(got, s.framing)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("FramingOf(%q, %d bytes at a time) = %v, want %v", c.headers, size, got, c.want)
				break
			}
		}
	}
	var s codedScan
	s.piece([]byte("GET / HTTP/1.0\r\n\r\nGET /2 HTTP/1.0\r\nTransfer-Encoding: chunked\r\nX: "))
	if s.next(); s.framing != Unknown {
		t.Errorf("before the second header: %v, want Unknown", s.framing)
	}
	if s.piece([]byte("HTTP/1.0\r\n\r\n")); s.framing != Unknown {
		t.Errorf("of a header that began with another: %v, want Unknown", s.framing)
	}
}

// A server knows of each request of HTTP/1.0 whether it is coded, as long as they come one by one.
func TestFramingOf(t *testing.T) {
	for _, counted := range []bool{true, false} {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var gate *Gate
		if counted {
			gate = NewGate(Limits{Conns: 9})
		}
		s := &http.Server{ConnContext: Context, ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateActive || state == http.StateIdle {
				Idle(c, state == http.StateIdle)
			}
		}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, FramingOf(r.Context())) })}
		go s.Serve(Listen(inner, 0, gate))
		defer s.Close()
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		answers := bufio.NewReader(c)
		for i, one := range []struct {
			fields string
			want   Framing
		}{{"", Plain}, {"Transfer-Encoding: chunked\r\n", Coded}, {"X-A: b\r\n", Plain}, {"transfer-encoding:a\r\n", Coded}} {
			if !counted {
				one.want = Unseen
			}
			io.WriteString(c, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n"+one.fields+"\r\n")
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(resp.Body); string(body) != fmt.Sprint(one.want) {
				t.Errorf("counted %v, request %d: FramingOf = %s, want %v", counted, i, body, one.want)
			}
		}
	}
}
