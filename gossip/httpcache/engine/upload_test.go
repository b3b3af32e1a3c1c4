package engine

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
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

// halfClosed is the body of a client that closes its side of the connection: as with net/http, the request's context
// ends before the reader has the result.
type halfClosed struct {
	cancel context.CancelFunc
	result error         // of the read
	after  time.Duration // it takes this long after the context's end
}

func (b halfClosed) Read([]byte) (int, error) {
	b.cancel()
	time.Sleep(b.after)
	return 0, b.result
}

func (halfClosed) Close() error { return nil }

// uploads is an origin that reads a request's body. It gives up when nobody waits for its answer.
type uploads struct{}

func (uploads) RoundTrip(r *http.Request) (*http.Response, error) {
	go io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A client whose body is too short is told so, and one that has sent all of it is gone, whatever is noticed first.
// A reader that hangs is not waited for.
func TestHalfClosed(t *testing.T) {
	for _, c := range []struct {
		name    string
		result  error
		after   time.Duration
		outcome Outcome
		status  int // 0 = no answer
	}{
		{"whole", io.EOF, 0, ClientGone, 0},
		{"whole, noticed later", io.EOF, time.Millisecond, ClientGone, 0},
		{"broken", io.ErrUnexpectedEOF, 0, ClientError, http.StatusBadRequest},
		{"broken, noticed later", io.ErrUnexpectedEOF, time.Millisecond, ClientError, http.StatusBadRequest},
		{"too long, noticed later", &http.MaxBytesError{}, time.Millisecond, ClientError, http.StatusRequestEntityTooLarge},
		{"hangs", io.EOF, time.Hour, ClientError, http.StatusBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache, err := New(Config{Name: "a", Open: memstore.Open(1 << 20), Transport: uploads{}, Tuning: Tuning{SendTimeout: time.Minute}})
				if err != nil {
					t.Fatal(err)
				}
				defer cache.Close()
				ctx, cancel := context.WithCancel(t.Context())
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://o.test/x", halfClosed{cancel, c.result, c.after})
				r.ContentLength, r.Trailer = -1, http.Header{"Sum": {"7"}} // which the reader adds to those that the origin gets
				w, begun := httptest.NewRecorder(), time.Now()
				res := cache.Serve(w, r)
				if took := time.Since(begun); took > 2*time.Second {
					t.Errorf("the answer took %v", took)
				}
				if status := w.Code; res.Outcome != c.outcome || res.Status != c.status || c.status != 0 && status != c.status {
					t.Errorf("outcome %v, status %d, the client has %d; want %v and %d", res.Outcome, res.Status, status, c.outcome, c.status)
				}
				time.Sleep(c.after) // its reader ends
			})
		})
	}
}

// A GET to the origin has no trailers, whatever its client's header named: net/http sends none without a body, and no
// request with a name that is no token.
func TestGetWithoutTrailers(t *testing.T) {
	asked := 0
	origin := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		if asked++; r.Trailer != nil {
			t.Errorf("trailers %v", r.Trailer)
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Cache-Control": {"max-age=60"}}, Body: http.NoBody}, nil
	})
	c, err := New(Config{Name: "a", Open: memstore.Open(1 << 20), Transport: origin})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := httptest.NewRequest(http.MethodGet, "http://o.test/x", nil)
	r.Trailer = http.Header{"Timeout=5": nil}
	if c.Serve(httptest.NewRecorder(), r); asked != 1 {
		t.Errorf("the origin was asked %d times", asked)
	}
}
