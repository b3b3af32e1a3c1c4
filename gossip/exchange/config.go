package exchange

import (
	"cmp"
	"time"
)

// Config has the settings of an [Engine]. Zero values are sensible, except in required fields.
type Config struct {
	Name        string // of this peer; required, see [ValidName]
	Incarnation uint64 // this life of it; required, see [NewIncarnation]
	Seed        uint64 // of all random choices

	Publish Publishing

	// SyncInterval is the mean time between two exchanges of vectors with a random peer, as long as
	// no peer has an equal sum. Zero means 2 s for up to 16 peers, growing to 10 s for 80.
	SyncInterval time.Duration

	// PublishedLog and ReplicaLog bound the memory of the deltas kept to answer gets, in bytes: for
	// this peer's digest, and for each replica. Zero means 4 MiB and 256 KiB.
	PublishedLog, ReplicaLog int

	// DigestBytes is the length of the longest body fetched or served. Zero means 64 MiB.
	DigestBytes int

	// Fetches bounds the concurrent gets for snapshots. Zero means 16. All gets together may be
	// eight times as many.
	Fetches int

	// Light means that this peer keeps no digest but its own.
	Light bool
}

// Publishing determines when a changed digest becomes a new version.
type Publishing struct {
	// MinInterval is the least time between two publications. Zero means 1 ms for each live peer,
	// within 30 ms and 5 s. So a peer receives at most a thousand publications a second, however
	// many peers there are.
	MinInterval time.Duration

	// Interval is the longest time that fewer than 24 changes wait for more. [Publishing.Wait] computes
	// the wait from its costs and savings. Zero means 5 s, or MinInterval if that is longer.
	Interval time.Duration
}

const (
	defaultMinInterval = 30 * time.Millisecond
	minIntervalPerPeer = time.Millisecond
	maxMinInterval     = 5 * time.Second
	defaultInterval    = 5 * time.Second

	minSync     = 2 * time.Second
	maxSync     = 10 * time.Second
	syncPerPeer = time.Second / 8
)

func (c Config) withDefaults() Config {
	c.PublishedLog = cmp.Or(c.PublishedLog, 4<<20)
	c.ReplicaLog = cmp.Or(c.ReplicaLog, 256<<10)
	c.DigestBytes = cmp.Or(c.DigestBytes, 64<<20)
	c.Fetches = cmp.Or(c.Fetches, 16)
	return c
}

// For returns p with zero times replaced by their defaults among n live peers.
func (p Publishing) For(n int) Publishing {
	if p.MinInterval <= 0 {
		p.MinInterval = min(max(time.Duration(n)*minIntervalPerPeer, defaultMinInterval), maxMinInterval)
		if p.Interval > 0 {
			p.MinInterval = min(p.MinInterval, p.Interval)
		}
	}
	if p.Interval <= 0 {
		p.Interval = defaultInterval
	}
	p.Interval = max(p.Interval, p.MinInterval)
	return p
}

// round returns the time over which the adverts of a publication to n live peers are spread.
func (p Publishing) round(n int) time.Duration {
	if n <= freePeers {
		return 0
	}
	return min(time.Duration(n)*paceOf, p.For(n).MinInterval/4, roundTime)
}

// syncInterval returns the mean time between syncs among n live peers.
func (c Config) syncInterval(n int) time.Duration {
	if c.SyncInterval > 0 {
		return c.SyncInterval
	}
	return min(max(time.Duration(n)*syncPerPeer, minSync), maxSync)
}

// NewIncarnation returns the incarnation of a process that starts at now. It is greater than those
// of all earlier starts if the clock was never put back. Otherwise it differs from them except in
// one case in a million.
func NewIncarnation(now time.Time, random uint64) uint64 {
	return uint64(now.UnixMilli())<<20 | random&(1<<20-1)
}
