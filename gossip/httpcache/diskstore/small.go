package diskstore

import (
	"errors"
	"fmt"
	"io"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// put appends an object to a segment; if it is too large for one, the error is [bodies.ErrTooLarge]. The
// caller unpins the returned segment, pinned, once the object can be found or is given up. A start
// does not find an object put in the state stateRemoved until it is marked as held.
func (s *store) put(key string, body []byte, bodySum uint64, data []byte, labels []uint64, st stamp, state byte) (o *object, pinned *segment, err error) {
	size := recordSize(len(data), len(body))
	whole := size + entrySize(len(labels), len(key))
	if len(body) > blockSize || len(labels) > maxLabels || whole > maxRecord(s.bound.Load()) {
		return nil, nil, bodies.ErrTooLarge
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

// read reads and checks the record of a small object. r points into raw, which only the
// caller uses. The error is ErrGone if the segment was removed.
func (g *segments) read(o *object) (raw []byte, r record, err error) {
	sg, at := g.locate(o)
	if sg == nil {
		return nil, r, bodies.ErrGone
	}
	defer sg.release()
	raw = make([]byte, o.bytes()) // includes the entry's size, and so may reach beyond the record
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
		err = fmt.Errorf("%w: a body has another length", errBroken)
	}
	return raw, r, err
}

// describeSmall appends a record with a new description and the same body. [store.swap] marks its
// entry as held.
func (s *store) describeSmall(o *object, data []byte, st stamp) (*object, *segment, error) {
	_, r, err := s.segments.read(o)
	if err != nil {
		return nil, nil, err
	}
	return s.put(o.key, r.body, r.bodySum, data, s.labelsOf(data), st, stateRemoved)
}
