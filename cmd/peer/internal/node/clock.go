package node

import (
	"net/http"
	"strconv"
	"time"
)

const aheadAtLeast = 10 * time.Second // before the log is told; more than an answer is under way

// aheadBy returns by how much, at least, this clock is ahead of that of the cache
// which gave an answer from its store; 0 if nothing is to be seen of that. A cache
// says by Age that the answer is as old as its Date makes it by its own clock, or
// older (RFC 9111 section 4.2.3).
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
