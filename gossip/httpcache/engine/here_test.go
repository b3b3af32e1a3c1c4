package engine

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// stays makes a Cache whose requests may all stay.
func stays(t *testing.T, origin roundTripFunc) *Cache {
	c, err := New(Config{Name: "c", Open: memstore.Open(64 << 20), Transport: origin,
		MayStay: func(context.Context) bool { return true }, Tuning: Tuning{BetweenBytesTimeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func getOf(path string) *http.Request { return httptest.NewRequest("GET", "http://o.test"+path, nil) }

// A noting writer calls see at each write.
type noting struct {
	*httptest.ResponseRecorder
	see func()
}

func (w noting) Write(p []byte) (int, error) { w.see(); return w.ResponseRecorder.Write(p) }

// TestFetchHere: a short answer is fetched, sent and stored in the goroutine that asks for it, in this order.
func TestFetchHere(t *testing.T) {
	for name, row := range map[string]struct {
		body string
		here bool
	}{
		"short": {strings.Repeat("x", mostHere), true},
		"empty": {"", true},
		"long":  {strings.Repeat("x", mostHere+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read, ctx := make(chan string, 1), &wanted{Context: t.Context()}
				c := stays(t, func(*http.Request) (*http.Response, error) {
					if !ctx.told {
						t.Error("the origin is asked while nobody looks whether the client leaves")
					}
					resp := fresh(row.body, "X-A", "b")
					resp.Body = readsFunc{resp.Body, func() {
						select {
						case read <- string(debug.Stack()):
						default:
						}
					}}
					return resp, nil
				})
				defer c.Close()
				w := noting{httptest.NewRecorder(), func() {
					if row.here && c.Stored.Load() != 0 {
						t.Error("it is stored before the client has it")
					}
				}}
				res := c.Serve(w, getOf("/x").WithContext(ctx))
				if w.Body.String() != row.body || res.Outcome != OriginFetch || res.Broken {
					t.Fatalf("%d bytes, %+v", w.Body.Len(), res)
				}
				if here := strings.Contains(<-read, "leadHere"); here != row.here {
					t.Errorf("received in the goroutine of the request: %v, want %v", here, row.here)
				}
				if row.here && c.Stored.Load() != 1 {
					t.Error("it is not stored when Serve returns")
				}
				synctest.Wait()
				if res := c.Serve(httptest.NewRecorder(), getOf("/x")); res.Outcome != LocalHit {
					t.Errorf("then %+v, want a hit", res)
				}
				if len(c.fetches) != 0 {
					t.Errorf("%d fetches are left", len(c.fetches))
				}
			})
		})
	}
}

// A wanted context notes that somebody wants to know when it ends.
type wanted struct {
	context.Context
	told bool
}

func (w *wanted) Done() <-chan struct{} { w.told = true; return w.Context.Done() }

type readsFunc struct {
	io.ReadCloser
	reads func()
}

func (r readsFunc) Read(p []byte) (int, error) { r.reads(); return r.ReadCloser.Read(p) }

// TestFetchHereStreams: what may be long, as it has no length, reaches the client as it comes.
func TestFetchHereStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		c := stays(t, func(*http.Request) (*http.Response, error) {
			resp := fresh("", "X-A", "b")
			resp.Body, resp.ContentLength = from, -1
			return resp, nil
		})
		defer c.Close()
		got := make(chan struct{}, 2)
		w := noting{httptest.NewRecorder(), func() { got <- struct{}{} }}
		go c.Serve(w, getOf("/x"))
		for range 2 {
			io.WriteString(to, "part")
			select {
			case <-got:
			case <-time.After(10 * time.Second):
				t.Fatal("the client does not get what has come")
			}
		}
		to.Close()
		synctest.Wait()
		if w.Body.String() != "partpart" || c.Stored.Load() != 1 {
			t.Errorf("%q, %d stored", w.Body, c.Stored.Load())
		}
	})
}

// TestFetchHereIsJoined: a fetch in the goroutine of a request goes on for others when its client leaves, and none of
// them waits for ever if that goroutine panics or the cache is closed.
func TestFetchHereIsJoined(t *testing.T) {
	for name, row := range map[string]struct {
		end    func(c *Cache, leaves func()) // what happens while the origin is asked
		answer func(context.Context) (*http.Response, error)
		leader Outcome
		status int // of the follower
	}{
		"its client leaves": {
			end:    func(_ *Cache, leaves func()) { leaves() },
			answer: func(context.Context) (*http.Response, error) { return fresh("x", "X-A", "b"), nil },
			leader: ClientGone, status: 200,
		},
		"it panics": {
			end:    func(*Cache, func()) {},
			answer: func(context.Context) (*http.Response, error) { panic("origin") },
			status: 502,
		},
		"the cache is closed": {
			end: func(c *Cache, _ func()) { go c.Close() },
			answer: func(ctx context.Context) (*http.Response, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			},
			leader: GatewayError, status: 503,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := make(chan struct{})
				c := stays(t, func(r *http.Request) (*http.Response, error) {
					close(asked)
					time.Sleep(time.Second)
					return row.answer(r.Context())
				})
				defer c.Close()
				ctx, leaves := context.WithCancel(t.Context())
				defer leaves()
				var all sync.WaitGroup
				all.Go(func() {
					defer func() {
						if v := recover(); v != nil && row.leader != 0 {
							t.Error(v)
						}
					}()
					if res := c.Serve(httptest.NewRecorder(), getOf("/x").WithContext(ctx)); res.Outcome != row.leader {
						t.Errorf("the leader: %+v, want %v", res, row.leader)
					}
				})
				<-asked
				w := httptest.NewRecorder()
				all.Go(func() { c.Serve(w, getOf("/x")) })
				synctest.Wait()
				row.end(c, leaves)
				all.Wait()
				if w.Code != row.status {
					t.Errorf("the follower is answered %d, want %d", w.Code, row.status)
				}
				synctest.Wait()
				if len(c.fetches) != 0 || row.status == 200 && c.Stored.Load() != 1 {
					t.Errorf("%d fetches are left, %d stored", len(c.fetches), c.Stored.Load())
				}
			})
		})
	}
}
