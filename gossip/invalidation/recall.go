package invalidation

import "time"

// Recall returns the payload of a recall: how far this member knows every log.
func (e *Engine) Recall() []byte {
	var known []Known
	for _, l := range e.logs.sorted() {
		if l.known > 0 {
			known = append(known, Known{l.Log, l.known})
		}
	}
	return AppendRecall(nil, known)
}

// HandleRecall answers a recall. payload is not retained.
func (e *Engine) HandleRecall(now time.Time, payload []byte) ([]byte, error) {
	known, err := DecodeRecall(payload)
	if err != nil {
		return nil, err
	}
	e.logs.trim(now)
	var m Logs
	room := MaxFrame - 16
	has := make(map[Log]uint64, len(known))
	for _, k := range known {
		has[k.Log] = k.Sequence
	}
	for _, l := range e.logs.sorted() {
		has := has[l.Log]
		if has >= l.known {
			continue
		}
		p := Part{Log: l.Log, Floor: l.floor, First: max(has, l.floor) + 1}
		if l.floor > 0 {
			p.Age = uint64(max(0, now.Sub(l.floorAt)) / time.Second)
		}
		if room -= 16 + 4*10; room <= 0 {
			m.More = true
			break
		}
		for _, entry := range l.entries[p.First-1-l.floor:] {
			if room -= entry.bytes(); room <= 0 {
				m.More = true
				break
			}
			p.Entries = append(p.Entries, entry)
		}
		if len(p.Entries) > 0 || p.Floor > has {
			m.Parts = append(m.Parts, p)
		}
		if m.More {
			break
		}
	}
	return m.AppendTo(nil), nil
}

// HandleLogs handles the answer to a recall. more says that there is more to recall.
func (e *Engine) HandleLogs(now time.Time, payload []byte) (more bool, err error) {
	m, err := DecodeLogs(payload)
	if err != nil {
		return false, err
	}
	for _, p := range m.Parts {
		if p.Log == e.own.Log {
			continue
		}
		l := e.logs.log(p.Log, now)
		if l == nil {
			continue
		}
		if l.known < p.Floor {
			e.missed(l, p, now)
		}
		if p.First <= l.known+1 && !e.takeAll(l, p.First, p.Entries, now) {
			continue
		}
		e.current(l)
	}
	return m.More, nil
}

// missed continues with a log behind the entries that others have forgotten. Unless these are
// older than everything that is held here, anything held may be out of date.
func (e *Engine) missed(l *log, p Part, now time.Time) {
	at := now.Add(-time.Duration(min(p.Age, uint64(logMemory/time.Second))) * time.Second)
	e.logs.skip(l, p.Floor, at, now)
	s := Step{at: ID{l.Log, p.Floor}}
	if at.Add(ageSlack).After(e.start) || now.Before(e.start) {
		s.Target = Target{Kind: Everything}
		e.stats.Everything++
		e.logs.leave(l, now)
	}
	e.out.Apply = append(e.out.Apply, s)
}
