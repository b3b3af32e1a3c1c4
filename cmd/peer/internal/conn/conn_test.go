package conn

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// part is a span of a file, or a memory.
type part struct {
	io.Reader
	f      *os.File
	off, n int64
}

func (p part) Span() (*os.File, int64, int64) { return p.f, p.off, p.n }

type block struct {
	io.Reader
	b []byte
}

func (b block) Bytes() []byte { return b.b }

func inMemory(b []byte) io.Reader { return block{bytes.NewReader(b), b} }

func inFile(t *testing.T, b []byte, off, n int64) func() io.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func() io.Reader { return part{io.NewSectionReader(f, off, n), f, off, n} }
}

// serve runs a server and returns a connection to it.
func serve(t *testing.T, h http.HandlerFunc) net.Conn {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(inner, 0)
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
	file, middle := inFile(t, long, 0, int64(len(long))), inFile(t, long, 4097, 70000-4097)
	head := func(c *Conn, n int) []byte {
		return fmt.Appendf(c.Buffer(), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n)
	}
	answer := func(c *Conn, n int, body io.Reader) {
		if k, err := c.Answer(head(c, n), body); err != nil || body != nil && k != int64(n) {
			t.Errorf("Answer() = %d, %v, want %d", k, err, n)
		}
	}
	held := func(w http.ResponseWriter, c *Conn, size int, header string, body io.Reader) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		w.Header().Set("X-Long", header)
		c.Hold()
		http.NewResponseController(w).Flush()
		if k, err := w.(io.ReaderFrom).ReadFrom(body); err != nil || k != int64(size) {
			t.Errorf("ReadFrom() = %d, %v, want %d", k, err, size)
		}
		if err := c.Release(); err != nil {
			t.Error(err)
		}
	}
	kinds := map[string]struct {
		want  []byte
		serve func(http.ResponseWriter, *Conn)
	}{
		"short":       {short, func(_ http.ResponseWriter, c *Conn) { answer(c, len(short), inMemory(short)) }},
		"long":        {long, func(_ http.ResponseWriter, c *Conn) { answer(c, len(long), inMemory(long)) }},
		"file":        {long, func(_ http.ResponseWriter, c *Conn) { answer(c, len(long), file()) }},
		"part":        {long[4097:70000], func(_ http.ResponseWriter, c *Conn) { answer(c, 70000-4097, middle()) }},
		"stream":      {short, func(_ http.ResponseWriter, c *Conn) { answer(c, len(short), bytes.NewReader(short)) }},
		"empty":       {nil, func(_ http.ResponseWriter, c *Conn) { answer(c, 0, nil) }},
		"held":        {long, func(w http.ResponseWriter, c *Conn) { held(w, c, len(long), "x", inMemory(long)) }},
		"held file":   {long, func(w http.ResponseWriter, c *Conn) { held(w, c, len(long), "x", file()) }},
		"held stream": {long, func(w http.ResponseWriter, c *Conn) { held(w, c, len(long), "x", bytes.NewReader(long)) }},
		"long header": {short, func(w http.ResponseWriter, c *Conn) {
			held(w, c, len(short), strings.Repeat("y", 30_000), inMemory(short))
		}},
		"server's own": {short, func(w http.ResponseWriter, _ *Conn) { w.Write(short) }},
		"never used":   {short, func(w http.ResponseWriter, c *Conn) { c.Hold(); c.Release(); w.Write(short) }},
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

// TestFileTooShort: a file that lost its end breaks the answer off.
func TestFileTooShort(t *testing.T) {
	b := pattern(100_000)
	failed := make(chan error, 1)
	body := inFile(t, b, 0, 200_000)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c := Of(r.Context())
		_, err := c.Answer(append(c.Buffer(), "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"...), body())
		failed <- err
		panic(http.ErrAbortHandler)
	})
	fmt.Fprintf(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if err != io.ErrUnexpectedEOF || !bytes.Equal(got, b) {
		t.Errorf("read %d bytes, %v, want %d and an unexpected end", len(got), err, len(b))
	}
	if err := <-failed; err != io.ErrUnexpectedEOF {
		t.Errorf("Answer() = %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

// TestClientGone: writing to a client that left is an error, with the body in a
// file, in memory, or not begun.
func TestClientGone(t *testing.T) {
	b := pattern(16 << 20)
	for name, body := range map[string]func() io.Reader{
		"file":   inFile(t, b, 0, int64(len(b))),
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
