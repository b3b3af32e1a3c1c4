package conn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// TestCredit checks that places are earned by answers that were taken, fade, and are lost at once.
func TestCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c credit
		has := func(when string, want int64) {
			t.Helper()
			if got := c.places(time.Now()); got != want {
				t.Errorf("%s: %d places, want %d", when, got, want)
			}
		}
		has("at first", 0)
		for range 5*perPlace - 1 {
			c.earn(time.Now())
		}
		has("one answer short of five places", 4)
		c.earn(time.Now())
		has("with it", 5)
		time.Sleep(fades)
		has("later", 2)
		c.earn(time.Now())
		time.Sleep(fades)
		has("later again", 1)
		time.Sleep(time.Hour)
		has("after an hour", 0)
		for range 100 * perPlace {
			c.earn(time.Now())
		}
		c.lose()
		has("after a cut", 0)
	})
}

// TestKnownFindRoom checks that strangers, from however many addresses, leave the last quarter of the memory for
// requests and a part of that for connections to an address whose answers were taken, by HTTP/1 and by HTTP/2.
func TestKnownFindRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // credit fades
		for _, coded := range []bool{false, true} {
			b := budget.New(256 << 20)
			g := NewGate(Limits{Connections: b.Open("connections", 0, 64*perConn), Requests: b.Open("requests", 0, 64*perRequest)})
			begins := func(addr string) bool {
				c := Patient(&from{addr: addr}, 0)
				if !g.admit(c, time.Now()) {
					return false
				}
				Idle(c, false)
				q := &c.pass.request
				if coded {
					q = &request{coded: true}
				}
				q.cost.Store(perRequest)
				if !g.enforce(q, addr) {
					c.Close()
					return false
				}
				return true
			}
			first, r := admitted(t, g, "10.1.0.1:1")
			r.ProtoMajor = 1
			for range 8 * perPlace {
				first.pass.host.credit.earn(time.Now())
			}
			Idle(first, false)
			strangers := 0
			for i := range 200 {
				if begins("10.0.0." + string(rune('0'+i%10)) + ":1") {
					strangers++
				}
			}
			if strangers < 40 || strangers > 48 {
				t.Errorf("coded %v: strangers have %d of 64 requests, want three quarters", coded, strangers)
			}
			for i := range 4 {
				if !begins("10.1.0.1:2") {
					t.Errorf("coded %v: request %d of a known address is refused", coded, i)
				}
			}
			for g.limits.Connections.Room() >= perConn { // each round takes a connection, or fails
				c := Patient(&from{addr: "10.0.0.1:1"}, 0)
				if !g.admit(c, time.Now()) {
					break
				}
				Idle(c, false)
			}
			if !g.admit(Patient(&from{addr: "10.1.0.1:3"}, 0), time.Now()) {
				t.Errorf("coded %v: strangers have all connections", coded)
			}
		}
	})
}
