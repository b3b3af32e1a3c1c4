package index

// A sweep rewrites all segments, without the codes of deleted peers: some with each update. A change of the
// shape is a sweep as well, which ends before anything else needs the shape.
type sweep struct {
	removed []removal // waiting, or being swept
	runs    bool
	now     int    // how many of these, from the front, are being swept
	next    uint64 // the first key not yet swept
}

// A removal is the place of a deleted peer whose codes are still in the table.
type removal struct {
	place uint32
	codes int
}

// A sweep begins when one code in deadOf is of a deleted peer, or when there is one removal for
// removalsOf places. In the latter case the table may be much larger than the removed peers: then each
// update sweeps at least one of sweepParts parts.
const (
	deadOf     = 8
	removalsOf = 4
	sweepParts = 256
)

// remove removes a peer with about this many codes. Its place must not be reused before finish frees it.
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

// sweepSome does a part of the sweep, in proportion to the positions of the present update.
func (t *table) sweepSome(positions int) {
	w := &t.sweep
	if !w.runs {
		if !t.manyRemovals() && (t.dead < t.fewCodes || t.dead < t.codes/deadOf) {
			return
		}
		if live := t.live(); live < 0.3 {
			// Far fewer lines are enough, with longer codes.
			t.reshape(planFor(t.present(), uint64(live*float64(t.fields())), 0))
			return
		}
		w.begin()
	}
	budget := 2 * deadOf * (positions + 1)
	if t.manyRemovals() {
		budget = max(budget, t.codes/sweepParts)
	}
	for budget > 0 && w.runs {
		budget -= t.sweepNext()
	}
}

func (w *sweep) begin() { w.runs, w.now, w.next = true, len(w.removed), 0 }

// sweepNext rewrites the next segment of the sweep, and then others may use the index: they may end the sweep.
// It returns how many codes the segment had.
func (t *table) sweepNext() int {
	w := &t.sweep
	s := t.at(w.next)
	t.rebuild(s, t.fit(s, roomy))
	if s.last() == ^uint64(0) {
		t.finish(w.now)
	} else {
		w.next = s.last() + 1
	}
	t.rested -= int(s.codes) / movedAsOne
	t.rest(0)
	return int(s.codes)
}

// manyRemovals reports whether too many places wait for a sweep. They slow down lookups, even if their
// peers, which were replaced again and again, had hardly any codes.
func (t *table) manyRemovals() bool {
	return len(t.sweep.removed) > t.fewRemovals+len(t.owners)/removalsOf
}

// sweepAll sweeps the whole table at once, and makes segments as small as possible.
func (t *table) sweepAll() {
	t.each(func(s *segment) { t.rebuild(s, t.fit(s, tight)) })
	t.finish(len(t.sweep.removed))
}

// finish frees the places of the first n removals, which have no codes left.
func (t *table) finish(n int) {
	w := &t.sweep
	for _, g := range w.removed[:n] {
		t.gone[g.place] = false
		t.dead -= g.codes
		t.freePlaces = append(t.freePlaces, g.place)
	}
	w.removed = append(w.removed[:0], w.removed[n:]...)
	w.runs = false
}
