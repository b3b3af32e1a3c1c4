package sibling

import (
	"slices"
	"sync"
	"time"
)

// If all siblings are slow, giving up on them only adds requests to the origin. So the deadline
// of a request follows what recent requests took, within these bounds.
const (
	recentMost   = 64               // requests that the deadline follows
	recentFor    = 30 * time.Second // for which a request counts
	recentStep   = 8                // answers after which the summary is computed again; at once if requests are lost or slow
	recentStale  = time.Second      // after which the summary is computed again in any case
	recentEnough = 3                // requests that a summary needs
	recentFactor = 3                // the deadline is this many times the median of the recent requests
	deadlineMost = 3                // and at most this many times Config.Timeout
	lateFactor   = 4                // added for each unit of lateness: a request waits for a processor several times, here and at the sibling
	lateExcuses  = 4                // lateness of Config.Timeout divided by this excuses a lost request
	lostByMost   = 0.5              // share of lost requests from which no sibling is blamed, if they were sent
	losersLeast  = 3                // to so many siblings or more
	lostBearable = 0.25             // share of lost requests up to which every lookup asks siblings
	askedLeast   = 1.0 / 16         // share of lookups that ask siblings even if all requests are lost
)

// recent has the outcomes of the last requests to all siblings. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	asked [recentMost]struct {
		peer string
		at   time.Time
		took time.Duration
		lost bool // no answer in time
	}
	next     int
	summary  // of asked, at computed
	computed time.Time
	credit   float64 // saved up; a lookup that asks siblings costs 1
}

// A summary of the recent requests.
type summary struct {
	median time.Duration // of what they took
	lost   float64       // share of lost ones
	losers int           // siblings that lost some
}

// add adds a request that took that long.
func (r *recent) add(peer string, took time.Duration, lost bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.asked[r.next]
	a.peer, a.at, a.took, a.lost = peer, now, took, lost
	r.next = (r.next + 1) % recentMost
	if lost || r.lost > 0 || took > 2*r.median || r.next%recentStep == 0 || now.Sub(r.computed) > recentStale {
		r.compute(now)
	}
}

// compute brings the summary up to date. r.mu is held.
func (r *recent) compute(now time.Time) {
	var room [recentMost]time.Duration
	var names [recentMost]string
	took, lost, losers := room[:0], 0, names[:0]
	for i := range r.asked {
		if a := &r.asked[i]; !a.at.IsZero() && now.Sub(a.at) < recentFor {
			took = append(took, a.took)
			if a.lost {
				if lost++; !slices.Contains(losers, a.peer) {
					losers = append(losers, a.peer)
				}
			}
		}
	}
	r.summary, r.computed = summary{losers: len(losers)}, now
	if len(took) >= recentEnough {
		slices.Sort(took)
		r.median = took[len(took)/2]
		r.summary.lost = float64(lost) / float64(len(took))
	}
}

// now returns the current summary.
func (r *recent) now() summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.computed) > recentStale {
		r.compute(now)
	}
	return r.summary
}

// spares reports whether a lookup should ask the origin before siblings, because many recent
// requests were lost. The larger their share, the more lookups are spared.
func (r *recent) spares() bool {
	lost := r.now().lost
	if lost <= lostBearable {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.credit += max(1-(lost-lostBearable)/(1-lostBearable), askedLeast); r.credit < 1 {
		return true
	}
	r.credit--
	return false
}

// deadline returns how long a sibling may take now to send the header of its answer: three times
// the median of the recent requests, and longer if this process runs late; between
// Config.Timeout and three times that. The median is high only if all siblings are slow.
// Where packets are lost, a few requests take much longer, and waiting for those does not help.
func (c *Client) deadline() time.Duration {
	return min(max(recentFactor*c.recent.now().median, c.cfg.Timeout)+lateFactor*c.late(), deadlineMost*c.cfg.Timeout)
}

// late returns by how much this process runs late.
func (c *Client) late() time.Duration {
	if c.cfg.Late == nil {
		return 0
	}
	return max(0, c.cfg.Late())
}

// runsLate reports whether this process runs so late that a request without an answer says nothing about
// the sibling.
func (c *Client) runsLate() bool { return lateExcuses*c.late() >= c.cfg.Timeout }

// excused reports whether a sibling that did not answer in time is not to blame, because this
// process runs late, or most requests to several siblings are lost. In the second case fewer
// lookups ask siblings (spares), and no sibling is suspended.
func (c *Client) excused() bool {
	s := c.recent.now()
	return c.runsLate() || s.lost >= lostByMost && s.losers >= losersLeast
}

// Load describes how well siblings answer now.
type Load struct {
	Deadline time.Duration // of the next request
	Lost     float64       // share of the requests of the last half minute that got no answer in time
}

// Load returns how well siblings answer now.
func (c *Client) Load() Load { return Load{Deadline: c.deadline(), Lost: c.recent.now().lost} }
