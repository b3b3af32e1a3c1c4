package node

import (
	"net/http"
	"strconv"
	"time"
)

const aheadAtLeast = 10 * time.Second // before it is logged; more than an answer takes on its way

// aheadBy returns by how much, at least, this clock is ahead of the clock of the cache
// that gave an answer from its store; 0 if the answer doesn't show it. By that cache's clock,
// its Age is at least the time since Date (RFC 9111 section 4.2.3).
func aheadBy(h http.Header, now time.Time) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	age, err := strconv.ParseUint(h.Get("Age"), 10, 31)
	if err != nil {
		return 0
	}
	return max(0, now.Sub(date)-time.Duration(age)*time.Second).Truncate(time.Second)
}
