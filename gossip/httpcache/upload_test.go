package httpcache

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// A body of up to 64 KiB, and its trailers, can be sent again from its beginning, any number of times, however much of
// it was read before. What an ended attempt still reads is an error.
func TestUploadAgain(t *testing.T) {
	for _, size := range []int{1, 3000, shortUpload, shortUpload + 1, 3 * shortUpload, -3000} { // negative = of unknown length
		for _, first := range []int{0, 1, shortUpload / 2, shortUpload * 4} {
			want := bytes.Repeat([]byte("x"), max(size, -size))
			times := 0
			origin := roundTripFunc(func(r *http.Request) (*http.Response, error) {
				if _, err := io.CopyN(io.Discard, r.Body, int64(first)); err != nil && err != io.EOF {
					t.Error(err)
				}
				for range 3 {
					body, err := r.GetBody()
					if err != nil {
						break
					}
					times++
					if sent, err := io.ReadAll(body); err != nil || !bytes.Equal(sent, want) {
						t.Errorf("%d of %d bytes were sent, %v", len(sent), size, err)
					}
				}
				if n, err := r.Body.Read(make([]byte, 9)); err != errUploadGone {
					t.Errorf("the first attempt read %d bytes, %v", n, err)
				}
				if times > 0 && r.Trailer.Get("Sum") != "7" {
					t.Errorf("%d bytes: trailers %v", size, r.Trailer)
				}
				return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody}, nil
			})
			c, err := New(Config{Name: "a", Open: memstore.Open(1 << 20), Transport: origin, Tuning: Tuning{SendTimeout: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPut, "http://o.test/x", bytes.NewReader(want))
			r.ContentLength, r.Trailer = int64(max(size, -1)), http.Header{"Sum": {"7"}}
			c.Serve(httptest.NewRecorder(), r)
			if again := len(want) <= shortUpload; again != (times == 3) {
				t.Errorf("%d bytes, of which %d were read, were sent again %d times", size, first, times)
			}
			c.Close()
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
	c, err := New(Config{Name: "a", Open: memstore.Open(1 << 20), Transport: uploads{}, Tuning: Tuning{SendTimeout: time.Minute}})
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
