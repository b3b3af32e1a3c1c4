package diskstore

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// spans is how a connection sees a body whose bytes the kernel may send from their file.
type spans interface {
	Next() ([]byte, error)
	Advance(n int)
	Span() (f *os.File, off, n int64)
	Distrust()
}

// source opens o as often as it takes until the kernel can send its body from a file, and returns
// the part; nil = it never can.
func source(t *testing.T, s *Store, o *Object, a bodies.Access, off, n int64) (*View, spans) {
	t.Helper()
	for range 2 * sendableAfter {
		v, err := s.Open(o, nil, a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := v.Source(off, n)
		if err != nil {
			t.Fatal(err)
		}
		if part, ok := b.(spans); ok {
			return v.(*View), part
		}
		v.Close()
	}
	return nil, nil
}

// TestSendable: the kernel gets the bytes of a hot body that is long enough from a file, for a
// client and not for another cache, for as long as the body is hot or a view of it is open.
func TestSendable(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux sends from a file in memory")
	}
	s := open(t, Options{MemoryBytes: 1 << 20})
	for _, tt := range []struct {
		size   int
		off, n int64
		a      bodies.Access
		want   bool
	}{
		{minSendable - 1, 0, minSendable - 1, bodies.Serve, false},
		{minSendable, 0, minSendable, bodies.Serve, true},
		{blockSize, 0, blockSize, bodies.Serve, true},
		{blockSize, 1000, minSendable, bodies.Serve, true},
		{blockSize, 1000, minSendable - 1, bodies.Serve, false}, // a short part of it
		{blockSize, 0, blockSize, bodies.Share, false},
	} {
		o := put(t, s, "a", body(1, tt.size), bodies.Meta{})
		v, part := source(t, s, o, tt.a, tt.off, tt.n)
		if got := part != nil; got != tt.want {
			t.Errorf("%+v: sent from a file: %v", tt, got)
		}
		if part == nil {
			continue
		}
		s.Delete("a") // the view keeps the file
		whole := body(1, tt.size)[tt.off : tt.off+tt.n]
		for _, skip := range []int{0, 1, 10_000} { // the client has taken some
			part.Advance(skip)
			whole = whole[skip:]
			f, off, n := part.Span()
			got := make([]byte, n)
			if _, err := f.ReadAt(got, off); err != nil || !bytes.Equal(got, whole) {
				t.Errorf("%+v: the file has %d other bytes, %v", tt, n, err)
			}
			if b, err := part.Next(); err != nil || !bytes.Equal(b, whole) {
				t.Errorf("%+v: Next() = %d other bytes, %v", tt, len(b), err)
			}
		}
		f, _, _ := part.Span()
		part.Distrust()
		if _, _, n := part.Span(); n != 0 {
			t.Errorf("%+v: offers the file again", tt)
		}
		if got, err := io.ReadAll(part.(io.Reader)); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("%+v: read %d other bytes, %v", tt, len(got), err)
		}
		if _, err := part.Next(); err != io.EOF {
			t.Errorf("%+v: Next() at the end: %v", tt, err)
		}
		v.Close()
		if _, err := f.Stat(); err == nil {
			t.Errorf("%+v: the file is still open", tt)
		}
	}
}

// TestSendablesAreFew: of very many equally hot bodies, only some get a file.
func TestSendablesAreFew(t *testing.T) {
	s := open(t, Options{MaxBytes: 256 << 20, MemoryBytes: 256 << 20})
	for i := range mostSendable + 20 {
		o := put(t, s, fmt.Sprint(i), body(1, minSendable), bodies.Meta{})
		if v, part := source(t, s, o, bodies.Serve, 0, minSendable); part != nil {
			v.Close()
		}
	}
	if n := s.hot.sendables.Load(); runtime.GOOS == "linux" && n != mostSendable {
		t.Errorf("%d files, want %d", n, mostSendable)
	}
}

// TestSendableIsCounted: the files take their part of the memory for hot objects, and go with them.
func TestSendableIsCounted(t *testing.T) {
	s := open(t, Options{MemoryBytes: 1 << 20})
	var all []*Object
	for i := range 100 {
		o := put(t, s, string(rune('a'+i)), body(1, blockSize), bodies.Meta{})
		if v, part := source(t, s, o, bodies.Serve, 0, blockSize); part != nil {
			v.Close()
			all = append(all, o)
		}
		s.hot.cache.CleanUp()
	}
	held := 0
	for _, o := range all {
		if h, ok := s.hot.get(o); ok && h.sent != nil {
			held++
		}
	}
	if n := int(s.hot.sendables.Load()); n != held || s.hot.bytes() > 1<<20 || held*2*blockSize > 1<<20 || runtime.GOOS == "linux" && held == 0 {
		t.Errorf("%d files, counted as %d, %d bytes in all", held, n, s.hot.bytes())
	}
	s.Close()
	if n := s.hot.sendables.Load(); n != 0 {
		t.Errorf("%d files are left after Close", n)
	}
}

// TestSendableInFlight: a client that is slow gets the right bytes of a body whose file was
// closed meanwhile, and whose memory went to another one.
func TestSendableInFlight(t *testing.T) {
	s := open(t, Options{MemoryBytes: 1 << 20})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := body(1, blockSize)
	o := put(t, s, "a", want, bodies.Meta{})
	v, part := source(t, s, o, bodies.Serve, 0, blockSize)
	if part == nil {
		t.Skip("only Linux sends from a file in memory")
	}
	f, off, size := part.Span()
	if _, err := f.Seek(off, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if n, err := c.(*net.TCPConn).ReadFrom(&io.LimitedReader{R: f, N: size}); n != blockSize || err != nil {
		t.Fatalf("ReadFrom() = %d, %v", n, err)
	}
	v.Close()
	s.Delete("a")
	for i := range 20 {
		o := put(t, s, "b", body(uint64(2+i), blockSize), bodies.Meta{})
		if v, part := source(t, s, o, bodies.Serve, 0, blockSize); part != nil {
			v.Close()
		}
	}
	got := make([]byte, blockSize)
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the client read other bytes, %v", err)
	}
}
