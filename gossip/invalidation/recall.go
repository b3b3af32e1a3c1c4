package invalidation

import "time"

// Recall returns the payload of a recall: how far this member knows each log.
func (e *Engine) Recall() []byte {
	var known []ID
	for _, l := range e.logs.sorted() {
		if l.known > 0 {
			known = append(known, ID{l.Log, l.known})
		}
	}
	return appendRecall(nil, known)
}

// HandleRecall answers a recall. payload is not retained.
func (e *Engine) HandleRecall(now time.Time, payload []byte) ([]byte, error) {
	known, err := decodeRecall(payload)
	if err != nil {
		return nil, err
	}
	e.logs.trim(now)
	var m answer
	room := maxFrame - 16
	has := make(map[Log]uint64, len(known))
	for _, k := range known {
		has[k.Log] = k.Sequence
	}
	for _, l := range e.logs.sorted() {
		has := has[l.Log]
		if has >= l.known {
			continue
		}
		p := part{Log: l.Log, floor: l.floor, first: max(has, l.floor) + 1}
		if l.floor > 0 {
			p.age = uint64(max(0, now.Sub(l.floorAt)) / time.Second)
		}
		if room -= 16 + 4*10; room <= 0 {
			m.more = true
			break
		}
		for _, entry := range l.entries[p.first-1-l.floor:] {
			if room -= entry.maxEncoded(); room <= 0 {
				m.more = true
				break
			}
			p.entries = append(p.entries, entry)
		}
		if len(p.entries) > 0 || p.floor > has {
			m.parts = append(m.parts, p)
		}
		if m.more {
			break
		}
	}
	return m.append(nil), nil
}

// HandleLogs handles the answer to a recall. more means that another recall will bring more.
func (e *Engine) HandleLogs(now time.Time, payload []byte) (more bool, err error) {
	m, err := decodeAnswer(payload)
	if err != nil {
		return false, err
	}
	for _, p := range m.parts {
		if p.Log == e.own.Log {
			continue
		}
		l := e.logs.log(p.Log, now)
		if l == nil {
			continue
		}
		if l.known < p.floor {
			e.missed(l, p, now)
		}
		if p.first <= l.known+1 {
			e.takeAll(l, p.first, p.entries, now)
		}
		e.current(l)
	}
	return m.more, nil
}

// missed continues with a log after the entries that others have forgotten. Unless all of those
// are older than everything that this member holds, any object here may be out of date.
func (e *Engine) missed(l *log, p part, now time.Time) {
	at := now.Add(-time.Duration(min(p.age, uint64(logMemory/time.Second))) * time.Second)
	e.logs.skip(l, p.floor, at, now)
	s := Pending{at: ID{l.Log, p.floor}}
	if at.Add(ageSlack).After(e.start) || now.Before(e.start) {
		s.Target = Target{Kind: Everything}
		e.stats.Everything++
		e.logs.addGap(l, now)
	}
	e.out.Apply = append(e.out.Apply, s)
}
