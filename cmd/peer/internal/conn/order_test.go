package conn

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestOrder: the connection that gives way to another is the oldest silent one, then the one that has been idle for longest without
// credit, then the one with; none that has a request under way.
func TestOrder(t *testing.T) {
	type step struct{ what, addr string } // what: enters, asks, asks often, is asking, speaks HTTP/2
	for _, tt := range []struct {
		name  string
		steps []step
		want  int // which connection gives way to the next stranger; -1 = none, and it is refused
	}{
		{"the oldest silent", []step{{"enters", "1"}, {"enters", "2"}, {"enters", "3"}}, 0},
		{"silent before idle", []step{{"asks", "1"}, {"asks often", "2"}, {"enters", "3"}}, 2},
		{"a stranger's before one of an address that was served", []step{{"asks often", "1"}, {"enters", "1"}, {"enters", "3"}}, 2},
		{"HTTP/2 without a request is silent", []step{{"asks", "1"}, {"asks", "2"}, {"speaks HTTP/2", "3"}}, 2},
		{"idle without credit before silent with", []step{{"asks often", "1"}, {"asks", "2"}, {"enters", "1"}}, 1},
		{"the longest idle without credit", []step{{"asks often", "1"}, {"asks", "2"}, {"asks", "3"}}, 1},
		{"the longest idle with credit", []step{{"asks often", "1"}, {"asks often", "2"}, {"asks often", "3"}}, 0},
		{"not one with a request", []step{{"is asking", "1"}, {"asks often", "2"}, {"is asking", "3"}}, 1},
		{"nobody", []step{{"is asking", "1"}, {"is asking", "2"}, {"is asking", "3"}}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewGate(Limits{Conns: len(tt.steps)})
				handler := g.Requests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				var conns []*Conn
				for _, s := range tt.steps {
					c := Patient(&from{addr: "10.0.0." + s.addr + ":1"}, 0)
					if !g.admit(c, time.Now()) {
						t.Fatalf("%v is refused", s)
					}
					conns = append(conns, c)
					ask := func() {
						Idle(c, false)
						r := httptest.NewRequest("GET", "/", nil).WithContext(Context(t.Context(), c))
						handler.ServeHTTP(httptest.NewRecorder(), r)
					}
					switch s.what {
					case "asks often":
						for range 2 * perPlace {
							ask()
							Idle(c, true)
						}
					case "asks":
						ask()
						Idle(c, true)
					case "speaks HTTP/2":
						Idle(c, false)
						Idle(c, true)
					case "is asking":
						ask()
					}
					time.Sleep(time.Millisecond)
				}
				stranger := Patient(&from{addr: "10.9.0.1:1"}, 0)
				if ok := g.admit(stranger, time.Now()); ok != (tt.want >= 0) {
					t.Errorf("admit(a stranger) = %v", ok)
				}
				for i, c := range conns {
					if gone := c.pass.gone.Load(); gone != (i == tt.want) {
						t.Errorf("%v gave way: %v", tt.steps[i], gone)
					}
				}
			})
		})
	}
}

// TestNewcomersGetIn: where idle connections have all places, those that come are answered, though each needs some time for its request
// and others come meanwhile.
func TestNewcomersGetIn(t *testing.T) {
	for _, often := range []int{1, 2 * perPlace} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(Limits{Conns: 64})
			handler := g.Requests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			ask := func(c *Conn) {
				Idle(c, false)
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(Context(t.Context(), c)))
				Idle(c, true)
			}
			for i := range 64 {
				c := Patient(&from{addr: fmt.Sprintf("10.1.0.%d:1", i)}, 0)
				g.admit(c, time.Now())
				for range often {
					ask(c)
				}
			}
			var coming []*Conn
			for i := range 200 {
				time.Sleep(time.Millisecond)
				c := Patient(&from{addr: fmt.Sprintf("10.2.0.%d:1", i)}, 0)
				if !g.admit(c, time.Now()) {
					t.Fatalf("newcomer %d is refused", i)
				}
				if coming = append(coming, c); i < 5 {
					continue
				}
				if asks := coming[i-5]; asks.pass.gone.Load() {
					t.Fatalf("newcomer %d gave way to the five behind it", i-5)
				} else {
					ask(asks)
				}
			}
		})
	}
}

// TestStrangersWait: of 1,000 silent connections a second none takes the place of a client that asks each 20 ms, or of a client that
// comes anew for each request, whatever the limit.
func TestStrangersWait(t *testing.T) {
	for _, limit := range []int{100, 320, 400} {
		for _, anew := range []bool{false, true} {
			t.Run(fmt.Sprintf("limit=%d/anew=%v", limit, anew), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := NewGate(Limits{Conns: limit, PerHost: limit / 2})
					handler := g.Requests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Millisecond) }))
					clients, failed := make([]*Conn, 8), 0
					for i := range 10_000 { // ms
						if i >= 1000 {
							g.admit(Patient(&from{addr: fmt.Sprintf("10.1.%d.1:1", i%100)}, 0), time.Now())
						}
						for n, c := range clients {
							if i%20 != n {
								continue
							}
							if c == nil || anew || c.pass.gone.Load() {
								if c != nil && !anew {
									failed++
								}
								c = Patient(&from{addr: fmt.Sprintf("10.0.0.%d:1", n)}, 0)
								clients[n] = c
								if !g.admit(c, time.Now()) {
									failed++
									continue
								}
							}
							Idle(c, false)
							r := httptest.NewRequest("GET", "/", nil).WithContext(Context(t.Context(), c))
							r.RemoteAddr = c.RemoteAddr().String()
							handler.ServeHTTP(httptest.NewRecorder(), r)
							Idle(c, true)
							if anew {
								c.Close()
							}
						}
						time.Sleep(time.Millisecond)
					}
					if failed > 0 {
						t.Errorf("%d of some 4,000 requests failed", failed)
					}
				})
			})
		}
	}
}

// TestServedKeepAWayIn: where strangers are busy on all connections that they may have, an address that was served finds a place.
func TestServedKeepAWayIn(t *testing.T) {
	g := NewGate(Limits{Conns: 2 * keptConn})
	handler := g.Requests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	first, r := admitted(t, g, "10.0.0.1:1")
	for range 3 * perPlace {
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	first.Close()
	strangers := 0
	for i := range 3 * keptConn {
		c := Patient(&from{addr: fmt.Sprintf("10.1.0.%d:1", i)}, 0)
		if g.admit(c, time.Now()) {
			strangers++
			Idle(c, false)
		}
	}
	again := Patient(&from{addr: "10.0.0.1:2"}, 0)
	if ok := g.admit(again, time.Now()); strangers != 2*keptConn-2 || !ok {
		t.Errorf("strangers have %d of %d places, and a client that was served gets one: %v", strangers, 2*keptConn, ok)
	}
}

// TestServedOverTLS: by TLS, with HTTP/1 and HTTP/2, a connection is silent until a request was answered, also behind its handshake.
func TestServedOverTLS(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		g := NewGate(Limits{Conns: 10})
		s := httptest.NewUnstartedServer(g.Requests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		s.Listener = Listen(s.Listener, 0, g)
		s.EnableHTTP2 = protocol == "h2"
		s.Config.ConnContext = Context
		s.Config.ConnState = func(c net.Conn, state http.ConnState) { Idle(c, state == http.StateNew || state == http.StateIdle) }
		s.StartTLS()
		served := func() (list []bool) {
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, c := range g.conns.list {
				list = append(list, c.pass.served.Load())
			}
			return list
		}
		silent, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
		if err != nil {
			t.Fatal(err)
		}
		if got := served(); !slices.Equal(got, []bool{false}) {
			t.Errorf("%s: after a handshake served is %v", protocol, got)
		}
		silent.Close()
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := served(); resp.TLS.NegotiatedProtocol != protocol && protocol == "h2" || !slices.Contains(got, true) {
			t.Errorf("%s: after a request by %s served is %v", protocol, resp.Proto, got)
		}
		s.Close()
	}
}
