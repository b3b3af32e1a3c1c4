package httpcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// value returns a load function.
type loadFunc = func(context.Context) ([]byte, time.Time, error)

func value(v string) loadFunc {
	return func(context.Context) ([]byte, time.Time, error) { return []byte(v), time.Time{}, nil }
}

// fails returns a load function that fails.
func fails(err error) loadFunc {
	return func(context.Context) ([]byte, time.Time, error) { return nil, time.Time{}, err }
}

// A value of any name comes from the store, from a sibling that has it, or from the load function.
func TestGet(t *testing.T) {
	inBothStores(t, func(t *testing.T, open func(*testing.T) func(bodies.Hooks) (bodies.Store, error)) {
		w := newWorld(t)
		defer w.close()
		a, b := newTestMember(t, "a", nil, open(t)), newTestMember(t, "me", w.client, open(t))
		names := []string{"x", "", "a b/?&#%+;=ü\x00\xff/../", "GET http://site.test/x", strings.Repeat("long ", 1000)}
		for i, name := range names {
			if got, err := a.Get(t.Context(), name, value(fmt.Sprint("value ", i))); err != nil || string(got) != fmt.Sprint("value ", i) {
				t.Errorf("Get(%q) = %q, %v", name, got, err)
			}
		}
		synctest.Wait()
		w.sibling(a.ServeHTTP)
		broken := errors.New("broken")
		for i, name := range names {
			for range 2 { // from a, and from where it was stored
				if got, err := b.Get(t.Context(), name, fails(broken)); err != nil || string(got) != fmt.Sprint("value ", i) {
					t.Errorf("Get(%q) = %q, %v", name, got, err)
				}
				synctest.Wait()
			}
		}
		if s := w.client.Stats(); s.Asked != uint64(len(names)) || s.Hits != s.Asked {
			t.Errorf("Stats = %+v", s)
		}
		if _, err := b.Get(t.Context(), "nobody's", fails(broken)); err != broken {
			t.Errorf("Get of what cannot be loaded: %v", err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Get(done, "y", fails(broken)); err != context.Canceled && err != broken {
			t.Errorf("Get that nobody waits for: %v", err)
		}
		if got := a.Stats(); got.Gets != uint64(len(names)) || got.Loads != got.Gets || got.Hits != 0 || got.Answered != got.Gets || got.Lookups < got.Answered {
			t.Errorf("Stats = %+v", got)
		}
	})
}

// A value that is too long for the store is returned all the same.
func TestGetTooLong(t *testing.T) {
	m := newTestMember(t, "me", nil, memstore.Open(4<<10))
	long := strings.Repeat("x", 2<<10)
	if got, err := m.Get(t.Context(), "x", value(long)); err != nil || string(got) != long || m.objects() != 0 {
		t.Errorf("Get of what is too long to be stored: %d bytes, %v", len(got), err)
	}
	if err := m.Set(t.Context(), "x", []byte(long), time.Time{}); !errors.Is(err, bodies.ErrTooLarge) {
		t.Errorf("Set of it: %v", err)
	}
	if err := m.Put(t.Context(), "x", strings.NewReader(long)); !errors.Is(err, bodies.ErrTooLarge) {
		t.Errorf("Put of it: %v", err)
	}
}

// If a body breaks off, the next sibling is asked.
func TestGetBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		w.sibling(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Length", "10")
			holds("part")(rw, r)
			rw.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		w.sibling(holds("whole"))
		got, err := newTestMember(t, "me", w.client, nil).Get(t.Context(), "x", fails(errors.New("loaded")))
		if p1, p2 := w.health.Of("p1"), w.health.Of("p2"); err != nil || string(got) != "whole" || p1.Failures != 1 || p2.Hits != 1 {
			t.Errorf("Get = %q, %v; %+v, %+v", got, err, p1, p2)
		}
	})
}

// Concurrent calls for a value share one load, and it is gone when it expires.
func TestGetCollapses(t *testing.T) {
	inBothStores(t, func(t *testing.T, open func(*testing.T) func(bodies.Hooks) (bodies.Store, error)) {
		m := newTestMember(t, "me", nil, open(t))
		var loads atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				got, err := m.Get(t.Context(), "x", func(context.Context) ([]byte, time.Time, error) {
					loads.Add(1)
					time.Sleep(time.Second)
					return []byte("value"), time.Now().Add(time.Minute), nil
				})
				if err != nil || string(got) != "value" {
					t.Errorf("Get = %q, %v", got, err)
				}
			})
		}
		all.Wait()
		if loads.Load() != 1 || m.Stats().Joined != 99 {
			t.Errorf("%d loads, %+v", loads.Load(), m.Stats())
		}
		time.Sleep(time.Minute - time.Millisecond)
		if m.has(valueID("x")) != "value" {
			t.Error("a value is gone before it expires")
		}
		time.Sleep(time.Millisecond)
		if m.has(valueID("x")) != "" || m.objects() != 0 {
			t.Error("a value is there after it has expired")
		}
		if _, err := m.Get(t.Context(), "x", fails(io.EOF)); err != io.EOF {
			t.Errorf("Get of what has expired and cannot be loaded: %v", err)
		}
	})
}

type contextKey struct{}

// A load lasts as long as any caller waits for it, even if the first one has given up. It has the values of the first
// one's context.
func TestLoadOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMember(t, "me", nil, nil)
		canceled := make(chan time.Duration, 1)
		start := time.Now()
		load := func(ctx context.Context) ([]byte, time.Time, error) {
			if got := ctx.Value(contextKey{}); got != "a value" {
				t.Errorf("the context has %v", got)
			}
			select {
			case <-time.After(3 * time.Second):
				return []byte("value"), time.Time{}, nil
			case <-ctx.Done():
				canceled <- time.Since(start)
				return nil, time.Time{}, ctx.Err()
			}
		}
		get := func(id string, patience time.Duration) error {
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), contextKey{}, "a value"), patience)
			defer cancel()
			_, err := m.Get(ctx, id, load)
			return err
		}
		go get("x", time.Second)
		time.Sleep(time.Millisecond)
		if err := get("x", 10*time.Second); err != nil {
			t.Errorf("the second caller: %v", err)
		}
		start = time.Now()
		go get("y", time.Second)
		time.Sleep(time.Millisecond)
		if err := get("y", 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits too short: %v", err)
		}
		if took := <-canceled; took.Round(time.Second) != 2*time.Second {
			t.Errorf("canceled after %v", took)
		}
		if err := get("y", 10*time.Second); err != nil {
			t.Errorf("after one that was canceled: %v", err)
		}
	})
}

// If a load panics, so does Get. If it ends its goroutine, Get returns an error.
func TestLoadPanics(t *testing.T) {
	m := newTestMember(t, "me", nil, nil)
	func() {
		defer func() {
			if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "bad") || !strings.Contains(fmt.Sprint(v), "value_test.go") {
				t.Errorf("recovered %v", v)
			}
		}()
		m.Get(t.Context(), "x", func(context.Context) ([]byte, time.Time, error) { panic("bad") })
	}()
	if _, err := m.Get(t.Context(), "x", func(context.Context) ([]byte, time.Time, error) {
		var goexit testing.T
		goexit.SkipNow()
		return nil, time.Time{}, nil
	}); err == nil || !strings.Contains(err.Error(), "Goexit") {
		t.Errorf("Goexit: %v", err)
	}
}

// A long value is read as it arrives, by all who want it, and then comes from the store or a sibling.
func TestOpen(t *testing.T) {
	inBothStores(t, func(t *testing.T, open func(*testing.T) func(bodies.Hooks) (bodies.Store, error)) {
		w := newWorld(t)
		defer w.close()
		a, b := newTestMember(t, "a", nil, open(t)), newTestMember(t, "me", w.client, open(t))
		w.sibling(a.ServeHTTP)
		want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
		loads := 0
		load := func(context.Context) (io.ReadCloser, time.Time, error) {
			loads++
			r, to := io.Pipe()
			go func() {
				to.Write(want[:len(want)/2])
				time.Sleep(time.Second)
				to.Write(want[len(want)/2:])
				to.Close()
			}()
			return r, time.Time{}, nil
		}
		read := func(m *Member) {
			v, err := m.Open(t.Context(), "x", load)
			if err != nil {
				t.Error(err)
				return
			}
			defer v.Close()
			began := time.Now()
			if _, err := io.ReadFull(v, make([]byte, 1000)); err != nil || loads == 1 && time.Since(began) > time.Second/2 {
				t.Errorf("the first bytes after %v: %v", time.Since(began), err)
			}
			if rest, err := io.ReadAll(v); err != nil || !bytes.Equal(rest, want[1000:]) {
				t.Errorf("%d more bytes, %v", len(rest), err)
			}
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { read(a) })
		}
		all.Wait()
		synctest.Wait()
		read(a)
		read(b)
		read(b)
		if _, err := a.Open(t.Context(), "y", func(context.Context) (io.ReadCloser, time.Time, error) { return nil, time.Time{}, io.EOF }); err != io.EOF {
			t.Errorf("Open of what cannot be loaded: %v", err)
		}
		if loads != 1 {
			t.Errorf("%d loads", loads)
		}
	})
}

// What was put is there at once, here and at siblings, without a message of invalidation. What breaks off is not.
func TestPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMembers(t, 2)
		defer w.close()
		long := strings.Repeat("0123456789", 100_000)
		if err := w.all[0].Put(t.Context(), "long", strings.NewReader(long)); err != nil {
			t.Error(err)
		}
		if err := w.all[0].Put(t.Context(), "short", iotest.OneByteReader(strings.NewReader("abc"))); err != nil {
			t.Error(err)
		}
		if got := w.get(0, "long"); got != long {
			t.Errorf("%d bytes", len(got))
		}
		broken := errors.New("broken")
		if err := w.all[0].Put(t.Context(), "broken", io.MultiReader(strings.NewReader("part"), iotest.ErrReader(broken))); err != broken || w.all[0].objects() != 2 {
			t.Errorf("Put of what breaks off: %v, %d objects", err, w.all[0].objects())
		}
		time.Sleep(3 * time.Second)
		if got := w.get(1, "short") + w.get(1, "long"); got != "abc"+long || w.loads != 0 {
			t.Errorf("%d bytes after %d loads", len(got), w.loads)
		}
		if s := w.all[1].Stats(); s.Invalidations != 0 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// TestStat: a value is there if the store has it, or a sibling that is asked; nothing is transferred.
func TestStat(t *testing.T) {
	inBothStores(t, func(t *testing.T, open func(*testing.T) func(bodies.Hooks) (bodies.Store, error)) {
		w := newWorld(t)
		defer w.close()
		empty, a, b := newTestMember(t, "empty", nil, open(t)), newTestMember(t, "a", nil, open(t)), newTestMember(t, "me", w.client, open(t))
		w.sibling(empty.ServeHTTP) // its digest is wrong
		w.sibling(a.ServeHTTP)
		for _, size := range []int{0, 5, 3 << 20} {
			name := fmt.Sprint(size)
			if err := a.Put(t.Context(), name, bytes.NewReader(make([]byte, size))); err != nil {
				t.Fatal(err)
			}
			for at, m := range map[string]*Member{"a": a, "me": b} {
				if n, found, err := m.Stat(t.Context(), name); err != nil || !found || n != int64(size) {
					t.Errorf("%d bytes at %s: Stat = %d, %v, %v", size, at, n, found, err)
				}
			}
		}
		if n := b.objects(); n != 0 {
			t.Errorf("%d objects are stored by Stat", n)
		}
		if _, found, err := b.Stat(t.Context(), "nobody's"); err != nil || found {
			t.Errorf("Stat of what nobody has: %v, %v", found, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, found, err := b.Stat(ctx, "nobody's"); err == nil || found {
			t.Errorf("Stat with a canceled context: %v, %v", found, err)
		}
	})
}

// A sibling's copy of a value is loaded again after a week, however often siblings pass it on.
func TestSiblingsValueRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		a, b, c := newTestMember(t, "a", w.client, nil), newTestMember(t, "b", w.client, nil), newTestMember(t, "c", w.client, nil)
		get := func(m *Member, v, want string) {
			t.Helper()
			if got, err := m.Get(t.Context(), "x", value(v)); err != nil || string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
			synctest.Wait()
		}
		get(a, "wrong", "wrong")
		w.sibling(a.ServeHTTP)
		get(b, "right", "wrong")
		w.sibling(b.ServeHTTP)
		w.known = w.known[1:]
		time.Sleep(6 * 24 * time.Hour)
		get(c, "right", "wrong")
		time.Sleep(24 * time.Hour)
		get(b, "right", "right")
		w.known = nil
		get(c, "right", "right")
		get(a, "right", "wrong") // its own
	})
}
