package store

import (
	"errors"
	"fmt"
	"io"
)

// put appends an object to a segment, if it is small; if not, the error is [ErrTooLarge]. The
// caller unpins the segment, pinned, when the object can be found, or will never be. An object
// in the state stateRemoved is one that a start doesn't find before it is marked as held.
func (s *Store) put(key string, body []byte, sums []uint64, data []byte, labels []uint64, st stamp, state byte) (o *Object, pinned *segment, err error) {
	size := recordSize(len(data), len(body))
	whole := size + entrySize(len(labels), len(key))
	if len(body) > blockSize || len(labels) > maxLabels || whole > maxRecord(s.maxBytes.Load()) {
		return nil, nil, ErrTooLarge
	}
	bodySum := emptySum
	if len(sums) > 0 {
		bodySum = sums[0]
	}
	o = newSmall(key, s.lastID.Add(1), whole, uint32(len(body)), st)
	buf := s.records.Get().(*[]byte)
	defer s.records.Put(buf)
	b := appendRecord((*buf)[:0], o.seq, key, data, body, bodySum)
	b = appendEntry(b, state, &indexEntry{stamp: st, body: o.size, data: uint32(len(data)), seq: o.seq}, key, labels)
	*buf = b
	g := s.segments
	sg, at, entryAt, err := g.append(b[:size], b[size:], state, false)
	if err != nil {
		return nil, nil, err
	}
	g.mu.Lock()
	g.settleLocked(o, sg, at, entryAt)
	g.mu.Unlock()
	return o, sg, nil
}

// read reads and checks the record of a small object. r points into raw, which belongs to the
// caller. The error is ErrGone if the segment was removed.
func (g *segments) read(o *Object) (raw []byte, r record, err error) {
	sg, at := g.locate(o)
	if sg == nil {
		return nil, r, ErrGone
	}
	defer sg.release()
	raw = make([]byte, o.bytes()) // with the entry's size, so it may reach behind the record
	n, err := sg.data.ReadAt(raw, at)
	if err != nil && !errors.Is(err, io.EOF) {
		if ourFault(err) {
			return nil, r, err
		}
		return nil, r, fmt.Errorf("%w: %w", errBroken, err)
	}
	raw = raw[:n]
	r, err = parseRecord(raw, o.seq, o.key)
	if err == nil && len(r.body) != int(o.size) {
		err = fmt.Errorf("%w: length of a body", errBroken)
	}
	return raw, r, err
}

// describeSmall appends a small object again, with its body, as an entry that [Store.swap] marks as held.
func (s *Store) describeSmall(o *Object, data []byte, st stamp) (*Object, *segment, error) {
	_, r, err := s.segments.read(o)
	if err != nil {
		return nil, nil, err
	}
	var sums []uint64
	if len(r.body) > 0 {
		sums = []uint64{r.bodySum}
	}
	return s.put(o.key, r.body, sums, data, s.labelsOf(data), st, stateRemoved)
}
