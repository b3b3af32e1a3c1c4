package conn

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync/atomic"
	"time"
)

// The last part of the memory for connections and for requests is kept for addresses that have earned it: by
// answers that they took whole. Those who only take places, from however many addresses, earn none, so clients that
// were there before find room at once, without a wait for a place that must first be cut.
const (
	perPlace = 16               // answers for each place
	fades    = 10 * time.Second // the time after which half of them are forgotten
	keptOf   = 4                // a quarter of the memory for requests is kept,
	keptConn = 32               // a thirty-second of that for connections, and of these: idle ones make room as well
)

// credits is what addresses have earned. Those that fall on the same place of the table share it.
type credits struct {
	seed  maphash.Seed
	table [4096]credit
}

// of returns the credit of an address.
func (c *credits) of(from netip.Prefix) *credit {
	return &c.table[maphash.Comparable(c.seed, from)%uint64(len(c.table))]
}

// A credit counts the answers that an address has taken lately: a period of time in the upper half, the count then in
// the lower. It is safe for concurrent use; of answers at the same moment one may be counted.
type credit struct{ count atomic.Uint64 }

// earn counts an answer that ended at this time.
func (c *credit) earn(now time.Time) {
	period, n := c.at(now)
	c.count.Store(period<<32 | min(n+1, math.MaxUint32))
}

// lose forgets all answers.
func (c *credit) lose() { c.count.Store(0) }

// places returns how many of the places that are kept the address may use.
func (c *credit) places(now time.Time) int64 {
	_, n := c.at(now)
	return int64(n / perPlace)
}

// mayHaveKept reports whether an address may have one more of the places that are kept.
func (h *host) mayHaveKept(now time.Time) bool { return int64(h.conns.Len()) < h.credit.places(now) }

func (c *credit) at(now time.Time) (period, n uint64) {
	count := c.count.Load()
	period = uint64(now.UnixNano()) / uint64(fades)
	return period, count & math.MaxUint32 >> min(period-min(period, count>>32), 32)
}
