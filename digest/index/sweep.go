package index

// A sweep removes the codes of peers that are gone: some segments with each update.
type sweep struct {
	removed []removal // waiting, or being swept
	now     int       // how many of these, from the front, are being swept
	next    uint64    // the first key not yet swept
}

// A removal is the place of a peer that is gone, whose codes are still there.
type removal struct {
	place uint32
	codes int
}

// A sweep begins when one code in deadOf is dead, or when there is one removal for
// removalsOf places. In the latter case the table may be much larger than what has been
// removed: then each update sweeps at least one of sweepParts parts.
const (
	deadOf     = 8
	removalsOf = 4
	sweepParts = 256
)

// remove removes a peer with about so many codes. Its place must not be used again before it
// is free.
func (t *table) remove(place uint32, codes int) {
	t.owners[place] = owner{}
	t.gone[place] = true
	t.dead += codes
	t.sweep.removed = append(t.sweep.removed, removal{place, codes})
	if t.present() == nil {
		t.finish(len(t.sweep.removed))
		t.reset()
	}
}

// sweepSome sweeps about as much as makes up for an update of so many positions.
func (t *table) sweepSome(positions int) {
	w := &t.sweep
	if w.now == 0 {
		if !t.manyRemovals() && (t.dead < t.fewCodes || t.dead < t.codes/deadOf) {
			return
		}
		if live := t.live(); live < 0.3 {
			// Much fewer lines are enough, with longer codes.
			t.reshape(planFor(t.present(), uint64(live*float64(t.fields())), 0))
			return
		}
		w.now, w.next = len(w.removed), 0
	}
	budget := 2 * deadOf * (positions + 1)
	if t.manyRemovals() {
		budget = max(budget, t.codes/sweepParts)
	}
	for budget > 0 {
		s := t.at(w.next)
		budget -= int(s.codes)
		t.rebuild(s, t.fit(s, roomy))
		if s.last() == ^uint64(0) {
			t.finish(w.now)
			return
		}
		w.next = s.last() + 1
	}
}

// manyRemovals reports whether too many places wait for a sweep. They cost lookups time, even
// if their peers, which were replaced again and again, had next to no codes.
func (t *table) manyRemovals() bool {
	return len(t.sweep.removed) > t.fewRemovals+len(t.owners)/removalsOf
}

// sweepAll sweeps everything at once, and leaves little room.
func (t *table) sweepAll() {
	t.each(func(s *segment) { t.rebuild(s, t.fit(s, tight)) })
	t.finish(len(t.sweep.removed))
}

// finish frees the places of the first n removed, which have no codes any more.
func (t *table) finish(n int) {
	w := &t.sweep
	for _, g := range w.removed[:n] {
		t.gone[g.place] = false
		t.dead -= g.codes
		t.freePlaces = append(t.freePlaces, g.place)
	}
	w.removed = append(w.removed[:0], w.removed[n:]...)
	w.now = 0
}
