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
	bytes int
	sum   uint32 // of all logs'

	remembered []remembered // every entry kept, in the order in which they came

	named map[string][]place // by identity, the last entry of each log
	wide  []mark             // entries that concern a prefix
	all   []place            // entries that concern everything, the last of each log
	gaps  []gap              // what was missed for good lately, one of a log
}

type log struct {
	Log
	floor   uint64    // entries up to this one are forgotten
	floorAt time.Time // when the newest of those came
	entries []Invalidation
	known   uint64 // the newest; floor + len(entries)
	applied uint64
	heard   time.Time // when something of it came last
	receipt bool      // the origin is to be told of applied
}

type place struct {
	log      *log
	sequence uint64
}

// A mark is a place in a log, and what is concerned by what is there.
type mark struct {
	place
	target Target
}

// remembered is when a mark came.
type remembered struct {
	mark
	at time.Time
}

// A gap ends at a place in a log; nobody knows what was in it.
type gap struct {
	place
	at time.Time // when it was noticed
}

const entryOverhead = 160 // bytes of memory, about, beside the name, twice

func (e Invalidation) size() int { return entryOverhead + 2*len(e.Name) + len(e.Signature) }

// log returns a log, which it makes if necessary; nil if there are far too many.
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
func (ls *logs) add(l *log, e Invalidation, now time.Time) {
	l.entries = append(l.entries, e)
	ls.know(l, l.known+1)
	l.heard = now
	ls.bytes += e.size()
	ls.remember(mark{place{l, l.known}, e.Target}, now)
}

// skip notes that all entries up to that one were missed, and are forgotten by others.
// What the log had before is forgotten here as well.
func (ls *logs) skip(l *log, floor uint64, at, now time.Time) {
	ls.remembered = slices.DeleteFunc(ls.remembered, func(r remembered) bool {
		if r.log == l {
			ls.unmark(r.mark)
		}
		return r.log == l
	})
	for _, e := range l.entries {
		ls.bytes -= e.size()
	}
	l.entries, l.floor, l.floorAt, l.heard = nil, floor, at, now
	ls.know(l, floor)
}

// know notes how far a log is known, also in the sum.
func (ls *logs) know(l *log, known uint64) {
	ls.sum -= l.sum()
	l.known = known
	ls.sum += l.sum()
}

// leave notes a gap in a log, up to what is known of it.
func (ls *logs) leave(l *log, now time.Time) {
	ls.gaps = slices.DeleteFunc(ls.gaps, func(g gap) bool { return g.log == l })
	ls.gaps = append(ls.gaps, gap{place{l, l.known}, now})
}

func (ls *logs) remember(m mark, now time.Time) {
	ls.remembered = append(ls.remembered, remembered{m, now})
	switch m.target.Kind {
	case Identity:
		name := whole(m.target.Name)
		ls.named[name] = replace(ls.named[name], m.place)
	case Prefix:
		ls.wide = append(ls.wide, m)
	default:
		ls.all = replace(ls.all, m.place)
	}
}

// replace puts a place where the place of the same log was.
func replace(of []place, p place) []place {
	i := slices.IndexFunc(of, func(o place) bool { return o.log == p.log })
	if i < 0 {
		return append(of, p)
	}
	of[i] = p
	return of
}

// unmark undoes the second half of remember.
func (ls *logs) unmark(m mark) {
	same := func(p place) bool { return p == m.place }
	switch m.target.Kind {
	case Identity:
		name := whole(m.target.Name)
		if ls.named[name] = slices.DeleteFunc(ls.named[name], same); len(ls.named[name]) == 0 {
			delete(ls.named, name)
		}
	case Prefix:
		ls.wide = slices.DeleteFunc(ls.wide, func(o mark) bool { return o.place == m.place })
	default:
		ls.all = slices.DeleteFunc(ls.all, same)
	}
}

// maxWide bounds how many marks a lookup goes through.
const maxWide = 1024

// trim forgets what is too old or too much. It ends: each round forgets one of the
// remembered entries.
func (ls *logs) trim(now time.Time) {
	for len(ls.remembered) > 0 {
		r := ls.remembered[0]
		if now.Sub(r.at) < ls.horizon && len(ls.remembered) <= ls.maxEntries && ls.bytes <= ls.maxBytes && len(ls.wide)+len(ls.all) <= maxWide {
			break
		}
		ls.remembered[0] = remembered{} // for the garbage collector, as below
		ls.remembered = ls.remembered[1:]
		ls.unmark(r.mark)
		ls.bytes -= r.log.entries[0].size()
		r.log.entries[0] = Invalidation{}
		r.log.entries = r.log.entries[1:]
		r.log.floor, r.log.floorAt = r.sequence, r.at
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

// concerning returns the last place in each log that concerns an identity.
func (ls *logs) concerning(identity string) (ids []ID) {
	for _, p := range ls.named[whole(identity)] {
		ids = append(ids, ID{p.log.Log, p.sequence})
	}
	add := func(p place) {
		i := slices.IndexFunc(ids, func(id ID) bool { return id.Log == p.log.Log })
		if i < 0 {
			ids = append(ids, ID{p.log.Log, p.sequence})
		} else {
			ids[i].Sequence = max(ids[i].Sequence, p.sequence)
		}
	}
	for _, m := range ls.wide {
		if m.target.Concerns(identity) {
			add(m.place)
		}
	}
	for _, p := range ls.all {
		add(p)
	}
	for _, g := range ls.gaps {
		add(g.place)
	}
	return ids
}

// idle reports whether nothing concerns any identity.
func (ls *logs) idle() bool { return len(ls.named)+len(ls.wide)+len(ls.all)+len(ls.gaps) == 0 }

// sum is a hash of how far the log is known; 0 if nothing of it is.
func (l *log) sum() uint32 {
	if l.known == 0 {
		return 0
	}
	var b [24]byte
	return uint32(digest.KeyOf(0, binary.LittleEndian.AppendUint64(l.Log.append(b[:0]), l.known)))
}
