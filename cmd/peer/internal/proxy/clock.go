package proxy

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// aheadAtLeast is by how much a clock is ahead of another that is worth a line of the log: more than an answer takes on
// its way.
const aheadAtLeast = 10 * time.Second

// aheadBy returns by how much, at least, this clock is ahead of that of the server whose answer to a request of the
// time sent has this header; 0 if the answer doesn't show it. By that server's clock, the answer's Age is at least the
// time since its Date (RFC 9111 section 4.2.3); without one it is new.
func aheadBy(h http.Header, sent time.Time) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	age := uint64(0)
	if text := h.Get("Age"); text != "" {
		if age, err = strconv.ParseUint(text, 10, 31); err != nil {
			return 0
		}
	}
	return max(0, sent.Sub(date)-time.Duration(age)*time.Second).Truncate(time.Second)
}

// clocks compares this machine's clock with those of origins. If it is ahead, what they send is stale too early, or on
// arrival: each hit becomes a validation, and no request fails.
type clocks struct {
	log          *slog.Logger
	looked, told atomic.Int64 // Unix seconds of the last look at an answer, and of the last line
}

// look compares it with an answer to a request that was sent at a time. One answer a second is enough, and dates are
// slow to parse; a line an hour is enough, and clients of a forward proxy choose the origins.
func (c *clocks) look(origin string, h http.Header, sent time.Time) {
	now := sent.Unix()
	if c == nil || now-c.told.Load() < int64(time.Hour/time.Second) || c.looked.Swap(now) == now {
		return
	}
	if by := aheadBy(h, sent); by >= aheadAtLeast {
		c.told.Store(now)
		c.log.Warn("this machine's clock is ahead of an origin's: objects go stale too early here", "origin", origin,
			"by", by)
	}
}
