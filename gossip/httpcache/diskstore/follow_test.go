package diskstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

func TestFollow(t *testing.T) {
	for _, n := range []int{0, 10, memoryBody, memoryBody + 1, 5 << 20} {
		for _, announced := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, Options{MaxBytes: 64 << 20})
				defer s.Close()
				b := body(3, n)
				size := int64(-1)
				if announced {
					size = int64(n)
				}
				w, err := s.create("k", size)
				if err != nil {
					t.Fatal(err)
				}
				const readers = 5
				results := make(chan error, readers)
				for i := range readers {
					go func() {
						var err error
						time.Sleep(time.Duration(i) * 7 * time.Millisecond) // attach at different times
						var got []byte
						f, ok := w.Follow(t.Context())
						if ok {
							got, err = io.ReadAll(f)
							f.Close()
						} else {
							_, got, err = read(s, "k")
						}
						if err == nil && !bytes.Equal(got, b) {
							err = errors.New("other bytes")
						}
						results <- err
					}()
				}
				for rest := b; len(rest) > 0; {
					k := min(len(rest), 300_000)
					if err := w.Write(t.Context(), rest[:k]); err != nil {
						t.Fatal(err)
					}
					rest = rest[k:]
					time.Sleep(time.Millisecond)
				}
				if _, err := w.Commit(bodies.Meta{Data: []byte("m")}); err != nil {
					t.Fatal(err)
				}
				for range readers {
					if err := <-results; err != nil {
						t.Errorf("n=%d announced=%v: %v", n, announced, err)
					}
				}
				if _, got, err := read(s, "k"); err != nil || !bytes.Equal(got, b) {
					t.Errorf("n=%d: stored %d bytes, %v", n, len(got), err)
				}
				if w.f != nil {
					t.Error("the writer's file is open still")
				}
			})
		}
	}
}

func TestFollowEnds(t *testing.T) {
	broken := errors.New("origin broke off")
	tests := []struct {
		name string
		end  func(*writer, context.CancelCauseFunc)
		want error
	}{
		{"error", func(w *writer, _ context.CancelCauseFunc) { w.End(broken) }, broken},
		{"abort", func(w *writer, _ context.CancelCauseFunc) { w.Abort() }, bodies.ErrBrokenOff},
		{"short of the announced size", func(w *writer, _ context.CancelCauseFunc) { w.Commit(bodies.Meta{}) }, bodies.ErrBrokenOff},
		{"reader leaves", func(w *writer, cancel context.CancelCauseFunc) { cancel(broken); w.Abort() }, broken},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, Options{})
			defer s.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			w, _ := s.create("k", 100)
			f, _ := w.Follow(ctx)
			defer f.Close()
			w.Write(t.Context(), []byte("begun"))
			go func() {
				time.Sleep(time.Second)
				tt.end(w, cancel)
			}()
			got, err := io.ReadAll(f)
			if string(got) != "begun" || !errors.Is(err, tt.want) {
				t.Errorf("%s: read %q, %v; want %v", tt.name, got, err, tt.want)
			}
			time.Sleep(time.Second)
			if _, ok := s.Get("k"); ok {
				t.Errorf("%s: a broken body was stored", tt.name)
			}
		})
	}
}
