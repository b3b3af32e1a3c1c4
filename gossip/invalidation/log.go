package invalidation

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// logs are the logs that this member knows, and the entries that it remembers. Memory is
// bounded: the oldest entries are forgotten first, whatever their log.
type logs struct {
	maxEntries, maxBytes int
	horizon              time.Duration

	by    map[Log]*log
	bytes int    // of the remembered entries
	sum   uint32 // of the sums of all logs

	remembered []arrival // every remembered entry, in order of arrival
	forgotten  time.Time // when the newest of those forgotten arrived; zero = none is forgotten
	gaps       []arrival // the last gap of each log, at the last entry that was missed, in order of discovery

	// The remembered entries by kind. Of those that match the same identities, the last of each log.
	named    map[string][]place // by identity
	prefixes []place            // and patterns
	all      []place            // these match every identity
}

type log struct {
	Log
	floor   uint64    // entries up to this one are forgotten
	floorAt time.Time // when the newest of those arrived
	entries []Target
	known   uint64 // the newest; floor + len(entries)
	applied uint64
	heard   time.Time // when something of it last arrived
	receipt bool      // the origin must be sent a receipt
}

func (l *log) target(sequence uint64) Target { return l.entries[sequence-l.floor-1] }

// A place is that of an entry in a log.
type place struct {
	log      *log
	sequence uint64
}

type arrival struct {
	place
	at time.Time
}

// update changes the entries of the kind of t and, if that is Identity, of its name.
func (ls *logs) update(t Target, change func([]place) []place) {
	switch t.Kind {
	case Prefix, Pattern:
		ls.prefixes = change(ls.prefixes)
	case Identity:
		name := whole(t.Name)
		if ls.named[name] = change(ls.named[name]); len(ls.named[name]) == 0 {
			delete(ls.named, name)
		}
	default:
		ls.all = change(ls.all)
	}
}

const entryOverhead = 160 // approximate bytes of memory, without the name, which is held twice

func (t Target) size() int { return entryOverhead + 2*len(t.Name) }

// log returns a log, and creates it if necessary; nil if there are far too many.
func (ls *logs) log(id Log, now time.Time) *log {
	l := ls.by[id]
	if l == nil && len(ls.by) < 2*maxLogs {
		l = &log{Log: id, heard: now}
		ls.by[id] = l
	}
	return l
}

// sorted returns the logs in their order on the wire.
func (ls *logs) sorted() []*log {
	return slices.SortedFunc(maps.Values(ls.by), func(a, b *log) int { return a.Log.compare(b.Log) })
}

// add appends the next entry of a log.
func (ls *logs) add(l *log, e Target, now time.Time) {
	l.entries = append(l.entries, e)
	ls.setKnown(l, l.known+1)
	l.heard = now
	ls.bytes += e.size()
	p := place{l, l.known}
	ls.remembered = append(ls.remembered, arrival{p, now})
	ls.update(e, func(of []place) []place {
		if i := slices.IndexFunc(of, func(o place) bool { return o.log == l }); i >= 0 && e.Kind != Prefix && e.Kind != Pattern {
			of[i] = p
			return of
		}
		return append(of, p)
	})
}

// remove takes the oldest entry of a log out of everything but remembered.
func (ls *logs) remove(l *log, at time.Time) {
	e := l.entries[0]
	l.entries[0] = Target{} // for the garbage collector
	l.entries = l.entries[1:]
	l.floor, l.floorAt = l.floor+1, at
	if at.After(ls.forgotten) {
		ls.forgotten = at
	}
	ls.bytes -= e.size()
	ls.update(e, func(of []place) []place {
		return slices.DeleteFunc(of, func(p place) bool { return p == place{l, l.floor} })
	})
}

// skip notes that this member missed all entries of a log up to floor, and that others have
// forgotten them. What it had of the log before is forgotten here as well.
func (ls *logs) skip(l *log, floor uint64, at, now time.Time) {
	ls.remembered = slices.DeleteFunc(ls.remembered, func(r arrival) bool { return r.log == l })
	for len(l.entries) > 0 {
		ls.remove(l, at)
	}
	l.floor, l.floorAt, l.heard = floor, at, now
	ls.setKnown(l, floor)
}

// setKnown sets how far a log is known, and updates the sum.
func (ls *logs) setKnown(l *log, known uint64) {
	ls.sum -= l.sum()
	l.known = known
	ls.sum += l.sum()
}

// addGap notes a gap in a log, which ends at its newest known entry.
func (ls *logs) addGap(l *log, now time.Time) {
	ls.gaps = slices.DeleteFunc(ls.gaps, func(g arrival) bool { return g.log == l })
	ls.gaps = append(ls.gaps, arrival{place{l, l.known}, now})
}

// maxWide bounds how many entries a lookup of one identity goes through.
const maxWide = 1024

// trim forgets entries that are too old or too many. It ends: each round forgets one of the
// remembered entries.
func (ls *logs) trim(now time.Time) {
	for len(ls.remembered) > 0 {
		r := ls.remembered[0]
		if now.Sub(r.at) < ls.horizon && len(ls.remembered) <= ls.maxEntries && ls.bytes <= ls.maxBytes && len(ls.prefixes)+len(ls.all) <= maxWide {
			break
		}
		ls.remembered[0] = arrival{} // for the garbage collector
		ls.remembered = ls.remembered[1:]
		ls.remove(r.log, r.at)
	}
	for len(ls.gaps) > 0 && (now.Sub(ls.gaps[0].at) >= gapMemory || len(ls.gaps) > maxWide) {
		ls.gaps = ls.gaps[1:]
	}
}

// forget drops logs without entries that are too old or too many, except those to keep.
func (ls *logs) forget(now time.Time, keep func(*log) bool) {
	var may []*log
	for _, l := range ls.by {
		if len(l.entries) == 0 && l.applied == l.known && !keep(l) {
			may = append(may, l)
		}
	}
	slices.SortFunc(may, func(a, b *log) int { return a.heard.Compare(b.heard) })
	for _, l := range may {
		if now.Sub(l.heard) < logMemory && len(ls.by) <= maxLogs {
			return
		}
		ls.sum -= l.sum()
		delete(ls.by, l.Log)
	}
}

// concerning returns, for each log, its last entry that matches an identity.
func (ls *logs) concerning(identity string) (ids []ID) {
	add := func(p place) {
		i := slices.IndexFunc(ids, func(id ID) bool { return id.Log == p.log.Log })
		if i < 0 {
			ids = append(ids, ID{p.log.Log, p.sequence})
		} else {
			ids[i].Sequence = max(ids[i].Sequence, p.sequence)
		}
	}
	for _, p := range ls.named[whole(identity)] {
		add(p)
	}
	for _, p := range ls.all {
		add(p)
	}
	for _, p := range ls.prefixes {
		if p.log.target(p.sequence).Matches(identity) {
			add(p)
		}
	}
	for _, g := range ls.gaps {
		add(g.place)
	}
	return ids
}

// idle reports whether no entry and no gap matches any identity.
func (ls *logs) idle() bool { return len(ls.named)+len(ls.prefixes)+len(ls.all)+len(ls.gaps) == 0 }

// sum is a hash of how far the log is known; 0 if no entry is.
func (l *log) sum() uint32 {
	if l.known == 0 {
		return 0
	}
	var b [24]byte
	return uint32(digest.KeyOf(0, binary.LittleEndian.AppendUint64(l.Log.append(b[:0]), l.known)))
}
