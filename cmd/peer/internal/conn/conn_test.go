package conn

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// parts is a body in blocks that must be parked before it may be asked again
// after a wait, as one from a file is.
type parts struct {
	io.Reader
	b      []byte
	size   int
	err    error // at the end
	parked int
}

func (p *parts) Next() ([]byte, error) {
	if len(p.b) == 0 {
		return nil, p.err
	}
	return p.b[:min(p.size, len(p.b))], nil
}
func (p *parts) Advance(n int) { p.b = p.b[n:] }
func (p *parts) Park()         { p.parked++ }

// spanned is a body whose bytes are in a file too, up to some of them.
type spanned struct {
	parts
	f          *os.File
	off        int64
	distrusted int
}

func (s *spanned) Span() (*os.File, int64, int64) {
	if s.distrusted > 0 {
		return nil, 0, 0
	}
	return s.f, s.off, min(int64(len(s.b)), 100_000)
}
func (s *spanned) Advance(n int) { s.parts.Advance(n); s.off += int64(n) }
func (s *spanned) Distrust()     { s.distrusted++ }

// TestSpans: the kernel sends what it may from the file; where it can't, because the
// file is not as long as it was, the body is asked for its bytes.
func TestSpans(t *testing.T) {
	b := pattern(1 << 20)
	for _, length := range []int{len(b), 300_000, 0} {
		path := filepath.Join(t.TempDir(), "body")
		if err := os.WriteFile(path, b[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		body := &spanned{parts: parts{b: b, size: 64 << 10, err: io.EOF}, f: f}
		done := make(chan error, 1)
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			c := Of(r.Context())
			_, err := c.Answer(append(c.Buffer(), "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n"...), body)
			done <- err
		})
		fmt.Fprintf(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes in the file: read %d bytes, %v", length, len(got), err)
		}
		if err := <-done; err != nil || runtime.GOOS == "linux" && (body.distrusted > 0) != (length < len(b)) {
			t.Errorf("%d bytes in the file: Answer() = %v, distrusted %d times", length, err, body.distrusted)
		}
	}
}

type block struct {
	io.Reader
	b []byte
}

func (b block) Bytes() []byte { return b.b }

func inMemory(b []byte) io.Reader { return block{bytes.NewReader(b), b} }

func inBlocks(b []byte, size int) func() io.Reader {
	return func() io.Reader { return &parts{b: b, size: size, err: io.EOF} }
}

// serve runs a server and returns a connection to it.
func serve(t *testing.T, h http.HandlerFunc) net.Conn {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(inner, 0, nil)
	var running sync.WaitGroup
	s := &http.Server{ConnContext: Context, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		h(w, r)
	})}
	go s.Serve(l)
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); s.Close(); running.Wait() })
	return client
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i*7)
	}
	return b
}

// TestAnswers: answers of all kinds take turns on one connection, asked for all
// at once, and each is whole, in its place, and the only one.
func TestAnswers(t *testing.T) {
	short, long := pattern(1000), pattern(4<<20)
	file, middle := inBlocks(long, 64<<10), inBlocks(long[4097:70000], 1000)
	head := func(c *Conn, n int) []byte {
		return fmt.Appendf(c.Buffer(), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n)
	}
	answer := func(c *Conn, n int, body io.Reader) {
		if k, err := c.Answer(head(c, n), body); err != nil || body != nil && k != int64(n) {
			t.Errorf("Answer() = %d, %v, want %d", k, err, n)
		}
	}
	read := func(w http.ResponseWriter, size int, body io.Reader) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		http.NewResponseController(w).Flush()
		if k, err := w.(io.ReaderFrom).ReadFrom(body); err != nil || k != int64(size) {
			t.Errorf("ReadFrom() = %d, %v, want %d", k, err, size)
		}
	}
	kinds := map[string]struct {
		want  []byte
		serve func(http.ResponseWriter, *Conn)
	}{
		"short":        {short, func(_ http.ResponseWriter, c *Conn) { answer(c, len(short), inMemory(short)) }},
		"long":         {long, func(_ http.ResponseWriter, c *Conn) { answer(c, len(long), inMemory(long)) }},
		"file":         {long, func(_ http.ResponseWriter, c *Conn) { answer(c, len(long), file()) }},
		"part":         {long[4097:70000], func(_ http.ResponseWriter, c *Conn) { answer(c, 70000-4097, middle()) }},
		"stream":       {short, func(_ http.ResponseWriter, c *Conn) { answer(c, len(short), bytes.NewReader(short)) }},
		"empty":        {nil, func(_ http.ResponseWriter, c *Conn) { answer(c, 0, nil) }},
		"read":         {long, func(w http.ResponseWriter, _ *Conn) { read(w, len(long), inMemory(long)) }},
		"read file":    {long, func(w http.ResponseWriter, _ *Conn) { read(w, len(long), file()) }},
		"read stream":  {long, func(w http.ResponseWriter, _ *Conn) { read(w, len(long), bytes.NewReader(long)) }},
		"server's own": {short, func(w http.ResponseWriter, _ *Conn) { w.Write(short) }},
	}
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c := Of(r.Context())
		if c == nil {
			t.Error("the request has no Conn")
			return
		}
		kinds[strings.ReplaceAll(r.URL.Path[1:], "_", " ")].serve(w, c)
	})
	var order []string
	for range 3 {
		for name := range kinds {
			order = append(order, name)
		}
	}
	go func() {
		for _, name := range order {
			fmt.Fprintf(client, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", strings.ReplaceAll(name, " ", "_"))
		}
	}()
	br := bufio.NewReader(client)
	for i, name := range order {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("answer %d, %s: %v", i, name, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(body, kinds[name].want) {
			t.Fatalf("answer %d, %s: %d bytes, %v, want %d", i, name, len(body), err, len(kinds[name].want))
		}
	}
}

// TestBodyFails: what is wrong with a body is told apart from what is wrong with
// the client, and the rest can be sent from elsewhere.
func TestBodyFails(t *testing.T) {
	b := pattern(200_000)
	broken := errors.New("broken")
	for _, good := range []int{0, 1, 64 << 10, 100_000} {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			c := Of(r.Context())
			n, err := c.Answer(append(c.Buffer(), "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"...), &parts{b: b[:good], size: 64 << 10, err: broken})
			if n != int64(good) || err != broken {
				t.Errorf("Answer() = %d, %v, want %d, %v", n, err, good, broken)
			}
			if n, err := c.ReadFrom(bytes.NewReader(b[good:])); n != int64(len(b)-good) || err != nil {
				t.Errorf("ReadFrom() = %d, %v", n, err)
			}
		})
		br := bufio.NewReader(client)
		for range 2 {
			fmt.Fprintf(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, b) {
				t.Errorf("%d good bytes: read %d bytes, %v", good, len(got), err)
			}
		}
	}
}

// TestParks: a body keeps no memory while its client takes nothing.
func TestParks(t *testing.T) {
	body := &parts{b: pattern(64 << 20), size: 64 << 10, err: io.EOF}
	want := body.b
	done := make(chan error, 1)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c := Of(r.Context())
		_, err := c.Answer(append(c.Buffer(), "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n"...), body)
		done <- err
	})
	fmt.Fprintf(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err := <-done; err != nil || runtime.GOOS == "linux" && body.parked < 2 {
		t.Errorf("Answer() = %v, parked %d times", err, body.parked)
	}
}

// TestClientGone: writing to a client that left is an error, with the body in a
// file, in memory, or not begun.
func TestClientGone(t *testing.T) {
	b := pattern(16 << 20)
	for name, body := range map[string]func() io.Reader{
		"blocks": inBlocks(b, 64<<10),
		"memory": func() io.Reader { return inMemory(b) },
	} {
		failed := make(chan error, 1)
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			c := Of(r.Context())
			_, err := c.Answer(append(c.Buffer(), "HTTP/1.1 200 OK\r\nContent-Length: 16777216\r\n\r\n"...), body())
			failed <- err
			panic(http.ErrAbortHandler)
		})
		fmt.Fprintf(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		io.ReadFull(client, make([]byte, 1000))
		client.Close()
		if err := <-failed; err == nil {
			t.Errorf("%s: Answer() to nobody = nil", name)
		}
	}
}

// TestOf finds nothing where nothing is.
func TestOf(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if c := Of(Context(t.Context(), a)); c != nil {
		t.Errorf("Of() a plain connection = %v", c)
	}
}

// TestOfEncrypted finds nothing below TLS, where an answer would leave in clear.
func TestOfEncrypted(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	own := Patient(a, 0)
	if c := Of(Context(t.Context(), own)); c != own {
		t.Errorf("Of() a connection of ours = %v", c)
	}
	for name, c := range map[string]net.Conn{"server": tls.Server(own, nil), "client": tls.Client(own, nil)} {
		if got := Of(Context(t.Context(), c)); got != nil {
			t.Errorf("%s: Of() a TLS connection = %v", name, got)
		}
	}
}
