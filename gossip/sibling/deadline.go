package sibling

import (
	"slices"
	"sync"
	"time"
)

// Siblings that are slow because everything is slow are worth waiting for: to give
// them up costs a request to the origin on top of the one to them. So the deadline of
// a question follows what siblings took lately, within these bounds.
const (
	recentMost   = 64               // questions that the deadline follows
	recentFor    = 30 * time.Second // for which one counts
	recentStep   = 8                // answers after which they are looked at again; at once if any was lost, or this one slow
	recentStale  = time.Second      // after which they are looked at again in any case
	recentEnough = 3                // questions below which nothing is known
	recentFactor = 3                // times what half of them took is the deadline
	deadlineMost = 3                // times Config.Timeout
	lateFactor   = 4                // a question waits for this process several times, here and at the sibling
	lateExcuses  = 4                // a question that is lost while this process is late by a quarter of Config.Timeout or more is not the sibling's fault
	lostByMost   = 0.5              // share of lost questions from which on no sibling is to blame, if they are
	most         = 3                // siblings or more
	lostBearable = 0.25             // share of lost questions up to which all are asked
	askedLeast   = 1.0 / 16         // share of questions asked even if all are lost
)

// recent is what became of the last questions, to all siblings. It is safe for
// concurrent use.
type recent struct {
	mu    sync.Mutex
	asked [recentMost]struct {
		peer string
		at   time.Time
		took time.Duration
		lost bool // no answer in time
	}
	next   int
	lately // as of
	known  time.Time
	credit float64 // of a question to be asked
}

// lately is what the recent questions say together.
type lately struct {
	need   time.Duration // what half of them took
	lost   float64       // share of them
	losers int           // siblings that did not answer those
}

// add notes a question that took so long.
func (r *recent) add(peer string, took time.Duration, lost bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.asked[r.next]
	a.peer, a.at, a.took, a.lost = peer, now, took, lost
	r.next = (r.next + 1) % recentMost
	if lost || r.lost > 0 || took > 2*r.need || r.next%recentStep == 0 || now.Sub(r.known) > recentStale {
		r.compute(now)
	}
}

// compute looks at the questions that still count. r.mu is held.
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
	r.lately, r.known = lately{losers: len(losers)}, now
	if len(took) >= recentEnough {
		slices.Sort(took)
		r.need = took[len(took)/2]
		r.lost = float64(lost) / float64(len(took))
	}
}

// now returns what the questions that still count say.
func (r *recent) now() lately {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.known) > recentStale {
		r.compute(now)
	}
	return r.lately
}

// spares reports whether a question is not to be asked, because of those asked lately
// so many were lost: the more, the fewer are asked.
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

// deadline is how long a sibling may take to its answer's header, now: three times
// what half of the questions took lately, and longer if this process itself is late;
// between Config.Timeout and three times that. Half of them take longer only where
// all siblings are slow: where packets are lost, some questions take much longer, and
// waiting for those helps nobody.
func (c *Client) deadline() time.Duration {
	return min(max(recentFactor*c.recent.now().need, c.cfg.Timeout)+lateFactor*c.late(), deadlineMost*c.cfg.Timeout)
}

// late is by how much this process runs late.
func (c *Client) late() time.Duration {
	if c.cfg.Late == nil {
		return 0
	}
	return max(0, c.cfg.Late())
}

// excused reports whether a sibling that did not answer in time is not to blame, since
// this process itself was late, or most siblings are. Then fewer questions are asked
// (spares), and no sibling is suspended.
func (c *Client) excused() bool {
	l := c.recent.now()
	return lateExcuses*c.late() >= c.cfg.Timeout || l.lost >= lostByMost && l.losers >= most
}

// Load is how well siblings answer now.
type Load struct {
	Deadline time.Duration // that the next question has
	Lost     float64       // share, in [0,1], of the questions of the last half minute that got no answer in time
}

// Load returns how well siblings answer now.
func (c *Client) Load() Load { return Load{Deadline: c.deadline(), Lost: c.recent.now().lost} }
