package sibling

import "time"

// If all siblings are slow, giving up on them only adds requests to the origin. So the deadline
// of a request follows what recent requests took, within these bounds.
const (
	recentFor    = 30 * time.Second // without a request after which the former ones do not count
	deadlineMost = 3                // times what recent requests took is the deadline, and times Config.Timeout at most
	lateFactor   = 4                // times the lateness of this process is added: a request waits for processors often
	// share of lost requests from which no sibling is blamed, if they were sent to several
	lostByMost   = 0.5
	lostBearable = 0.25 // share of lost requests up to which these do not show that all siblings are slow
)

// recent sums up the recent requests to all siblings. It is part of a Health.
type recent struct {
	summary
	losers [3]string // of the last lost ones
	at     time.Time // of the last one
}

// A summary has moving averages of the share of lost requests, and of what they took, in seconds.
type summary struct {
	lost float64
	took average
}

// add adds a request that took that long.
func (r *recent) add(peer string, took time.Duration, lost bool, now time.Time) {
	r.now(now)
	share := 0.0
	if lost {
		share = 1
		r.losers = [3]string{peer, r.losers[0], r.losers[1]}
	}
	if r.lost += averageGain / 2 * (share - r.lost); !lost || r.lost > lostBearable {
		r.took.add(took.Seconds())
	}
	r.at = now
}

// now returns the current summary.
func (r *recent) now(now time.Time) summary {
	if now.Sub(r.at) >= recentFor {
		r.summary, r.losers = summary{}, [3]string{}
	}
	return r.summary
}

// mostAreLost reports whether so many requests to different siblings are lost that none of these is to blame.
func (r *recent) mostAreLost(now time.Time) bool {
	a, b, c := r.losers[0], r.losers[1], r.losers[2]
	return r.now(now).lost >= lostByMost && a != b && b != c && a != c
}

// recently returns the summary of the recent requests.
func (h *Health) recently() summary {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recent.now(time.Now())
}

// deadline returns how long a sibling may take now to send the header of its answer: three times
// the average of the recent requests, and longer if this process runs late; between
// Config.Timeout and three times that. The average is that high only if many siblings are slow.
// Where packets are lost, a few requests take much longer, and waiting for those does not help.
func (c *Client) deadline() time.Duration {
	took := time.Duration(c.cfg.Health.recently().took.value * float64(time.Second))
	return min(max(deadlineMost*took, c.cfg.Timeout)+lateFactor*c.late(), deadlineMost*c.cfg.Timeout)
}

// late returns by how much this process runs late.
func (c *Client) late() time.Duration {
	if c.cfg.Late == nil {
		return 0
	}
	return max(0, c.cfg.Late())
}
