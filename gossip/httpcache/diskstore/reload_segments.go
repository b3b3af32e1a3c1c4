package diskstore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// reload reads the indexes of all segments, several at a time, but no bodies.
func (g *segments) reload() error {
	names, err := g.store.opt.FS.ReadDir(g.dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kinds := map[string][]uint64{} // the numbers of files
	for _, name := range names {
		digits, kind, _ := strings.Cut(name, ".")
		if n, err := strconv.ParseUint(digits, 16, 64); err == nil && len(digits) == 16 {
			kinds[kind] = append(kinds[kind], n)
		}
	}
	indexes, data := kinds["index"], kinds["data"]
	slices.Sort(indexes)
	for _, n := range data {
		if !slices.Contains(indexes, n) { // after a crash before its first object, or during its removal
			if err := g.store.opt.FS.Remove(g.path(n, "data")); err != nil {
				return err
			}
		}
	}
	g.last = slices.Max(slices.Concat(indexes, data, []uint64{0}))
	err = inParallel(runtime.GOMAXPROCS(0), indexes, g.restore)
	g.head = g.all[g.last]
	return err
}

// restore adds a segment, as far as its index can be read, and cuts off the rest of the index.
func (g *segments) restore(n uint64, buf []byte) error {
	s := g.store
	sg, dataSize, err := g.open(n)
	if errors.Is(err, errBroken) {
		return errors.Join(s.removeBroken(g.path(n, "index"), err), s.opt.FS.RemoveAll(g.path(n, "data")))
	} else if err != nil {
		return err
	}
	files, size := sg.size, int64(2*segmentHead)
	g.add(n, sg)
	defer func() {
		g.mu.Lock()
		g.growLocked(sg, max(size-files, 0))
		g.mu.Unlock()
	}()
	r := newEntryReader(sg.index, buf)
	for {
		e, _, at, err := r.next()
		if err != nil {
			sg.entries = at
			switch {
			case err == io.EOF:
				return nil
			case errors.Is(err, errBroken):
				s.removed.Add(1)
				s.log.Warn("cut off the end of a segment's index", "file", g.path(n, "index"), "offset", at, "error", err)
				return sg.index.Truncate(at)
			}
			return err
		}
		record := recordSize(int(e.data), int(e.body))
		size += rounded(record + e.size)
		sg.end = max(sg.end, e.at+record)
		switch {
		case !e.held:
			continue
		case e.at < segmentHead || e.at+record > dataSize:
			s.removed.Add(1)
			s.trash.mark(sg, at, stateRemoved)
			continue
		}
		o := newSmall(string(e.key), e.seq, record+e.size, e.body, e.stamp)
		g.mu.Lock()
		g.settleLocked(o, sg, e.at, at)
		g.mu.Unlock()
		s.restore(o, e.written, decodeUint64s(e.labels))
	}
}

// open opens the files of a segment. If they are useless, the error wraps errBroken. They are of another
// format only if both say so, since these bytes have no checksum.
func (g *segments) open(n uint64) (sg *segment, dataSize int64, err error) {
	index, indexSize, err := g.openFile(n, "index", indexFamily, indexMagic)
	other := errors.Is(err, errOther)
	if err != nil && !other {
		return nil, 0, err
	}
	data, dataSize, errData := g.openFile(n, "data", dataFamily, dataMagic)
	if err == nil && errData == nil {
		return &segment{data: data, index: index, end: segmentHead, entries: segmentHead, size: dataSize + indexSize}, dataSize, nil
	}
	for _, f := range []File{index, data} {
		if f != nil {
			f.Close()
		}
	}
	if err = cmp.Or(err, errData); other != errors.Is(errData, errOther) || errors.Is(errData, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil, 0, err
}

func (g *segments) openFile(n uint64, kind, family, magic string) (f File, size int64, err error) {
	if f, err = g.store.opt.FS.Edit(g.path(n, kind)); err != nil {
		return nil, 0, err
	}
	if err = checkMagic(f, family, magic); err == nil {
		size, err = f.Size()
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("%s: %w", g.path(n, kind), err)
	}
	return f, size, nil
}
