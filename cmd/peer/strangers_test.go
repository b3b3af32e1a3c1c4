//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestStrangersBesideNginx: of what eight clients ask, while strangers from 100 addresses connect and send nothing, a peer fails at no more
// than an nginx with as many connections, and five: by connections that are kept and by new ones, at 100 to 1,000 strangers a second.
// It logs how long answers take.
func TestStrangersBesideNginx(t *testing.T) {
	if !*needProxies {
		t.Skip("takes half a minute: -proxies")
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		io.WriteString(w, "page")
	}))
	defer origin.Close()
	const limit = 400
	p := spawnWith(t, 4096, "run", "--name", "p1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
		"--origin", origin.URL, "--store", t.TempDir(), "--max-connections", fmt.Sprint(limit))
	nginx := freeAddr(t)
	startNginxOf(t, nginx, fmt.Sprintf("events { worker_connections %d; }", limit),
		fmt.Sprintf("server { listen %s; location / { return 200 page; } }", nginx))
	for _, tt := range []struct {
		perSecond int
		anew      bool
	}{{0, false}, {100, false}, {500, false}, {1000, false}, {0, true}, {1000, true}} {
		failed := make(map[string]int64)
		for _, at := range []struct{ name, addr string }{{"peer", p.listen}, {"nginx", nginx}} {
			ok, bad, p99 := besideStrangers(t, at.addr, tt.perSecond, tt.anew)
			t.Logf("%-5s %4d strangers a second, new connections %-5v: %d answers, %d failures, p99 %v", at.name, tt.perSecond, tt.anew, ok, bad, p99)
			failed[at.name] = bad
		}
		if failed["peer"] > failed["nginx"]+5 {
			t.Errorf("%+v: %d failures, %d at nginx", tt, failed["peer"], failed["nginx"])
		}
	}
}

// besideStrangers has eight clients ask for four seconds, each 20 ms, while strangers connect.
func besideStrangers(t *testing.T, addr string, perSecond int, anew bool) (ok, bad int64, p99 time.Duration) {
	t.Helper()
	var all, strangers sync.WaitGroup
	var good, failed atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	stop := make(chan struct{})
	begin := make(chan struct{})
	for i := range 8 {
		all.Go(func() {
			var c net.Conn
			for n := range 225 {
				if n == 25 { // half a second alone
					<-begin
				}
				start := time.Now()
				var err error
				if c == nil {
					d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+i))}, Timeout: 2 * time.Second}
					c, err = d.Dial("tcp", addr)
				}
				if err == nil {
					c.SetDeadline(start.Add(10 * time.Second))
					_, err = io.WriteString(c, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
				}
				if err == nil {
					var resp *http.Response
					if resp, err = http.ReadResponse(bufio.NewReader(c), nil); err == nil {
						var b []byte
						if b, err = io.ReadAll(resp.Body); err == nil && strings.TrimSpace(string(b)) != "page" {
							err = io.ErrUnexpectedEOF
						}
					}
				}
				if n >= 25 && err == nil {
					good.Add(1)
					mu.Lock()
					took = append(took, time.Since(start))
					mu.Unlock()
				} else if n >= 25 {
					failed.Add(1)
				}
				if c != nil && (anew || err != nil) {
					c.Close()
				}
				if anew || err != nil {
					c = nil
				}
				time.Sleep(20 * time.Millisecond)
			}
			if c != nil {
				c.Close()
			}
		})
	}
	if perSecond > 0 {
		strangers.Go(func() {
			var held []net.Conn
			tick := time.NewTicker(time.Second / time.Duration(perSecond))
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					for _, c := range held {
						c.Close()
					}
					return
				case <-tick.C:
					d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%100))}, Timeout: 2 * time.Second}
					if c, err := d.Dial("tcp", addr); err == nil {
						held = append(held, c)
					}
				}
			}
		})
	}
	close(begin)
	all.Wait()
	close(stop)
	strangers.Wait()
	slices.Sort(took)
	if len(took) > 0 {
		p99 = took[len(took)*99/100]
	}
	return good.Load(), failed.Load(), p99.Round(time.Millisecond / 10)
}
