package httpcache

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// Attempts to send a body are ended at random, some while they read. The next one gets the whole body
// from its beginning, or there is none since the body is too long.
func TestUploadAgain(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 0))
		size := []int{0, 1, 3000, keptOfUpload - 1, keptOfUpload, keptOfUpload + 1, 3 * keptOfUpload}[rng.IntN(7)]
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		in, out := io.Pipe()
		go func() {
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 1+rng.IntN(20000))
				if _, err := out.Write(rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
			out.Close()
		}()
		attempts := rand.New(rand.NewPCG(seed, 1))
		u := &upload{body: in}
		body := io.ReadCloser(u)
		for range 5 {
			old := body
			part := make([]byte, 1+attempts.IntN(size+1))
			n, err := io.ReadFull(body, part)
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF || !bytes.Equal(part[:n], want[:n]) {
				t.Fatalf("seed %d: read %d of %d bytes, equal %v, error %v", seed, n, size, bytes.Equal(part[:n], want[:n]), err)
			}
			reading := make(chan struct{})
			go func() {
				old.Read(make([]byte, 100)) // as a transport may that has not noticed
				close(reading)
			}()
			next, err := u.again()
			if err != nil {
				if size <= keptOfUpload {
					t.Fatalf("seed %d: again() of %d bytes = %v", seed, size, err)
				}
				<-reading
				in.Close()
				body = nil
				break
			}
			body = next
			<-reading
			if n, err := old.Read(make([]byte, 1)); err != errUploadGone {
				t.Fatalf("seed %d: an ended attempt read %d bytes, error %v", seed, n, err)
			}
		}
		if body == nil {
			continue
		}
		if err := iotest.TestReader(io.MultiReader(body), want); err != nil {
			t.Fatalf("seed %d: %d bytes: %v", seed, size, err)
		}
	}
}

// brokenOff is the body of a client that closes its side of the connection too early: as with net/http, the
// request's context ends before the reader has the error.
type brokenOff struct {
	cancel   context.CancelFunc
	answered <-chan struct{}
}

func (b brokenOff) Read([]byte) (int, error) {
	b.cancel()
	<-b.answered
	return 0, io.ErrUnexpectedEOF
}

func (brokenOff) Close() error { return nil }

// uploads is an origin that reads a request's body. It gives up when nobody waits for its answer.
type uploads struct{}

func (uploads) RoundTrip(r *http.Request) (*http.Response, error) {
	go io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A client whose body is too short is told so, whatever is noticed first.
func TestBodyBrokenOff(t *testing.T) {
	c, err := New(Config{Name: "a", Open: memstore.Open(1 << 20), Transport: uploads{}, SendTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://o.test/x", brokenOff{cancel, answered})
	r.ContentLength = 9
	w := httptest.NewRecorder()
	res := c.Serve(w, r)
	close(answered)
	if w.Code != http.StatusBadRequest || res.Outcome == ClientGone {
		t.Errorf("status %d, outcome %v; want 400", w.Code, res.Outcome)
	}
}
