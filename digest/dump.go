package digest

import (
	"fmt"
	"io"
	"strings"
)

// A field is a piece of a message, as FORMAT.md names it.
type field struct {
	name  string
	at    int
	bytes []byte
	value string
}

// Dump writes a message to w field by field: offset, bytes, name and meaning. It reads the
// structure only, so it needs no base for a delta. Of a damaged message it shows the fields
// before the damage, and returns the error as well. It applies the default [Limits].
func Dump(w io.Writer, b []byte) error {
	fields, problem := layout(b)
	for _, f := range fields {
		for i := 0; i == 0 || i < len(f.bytes); i += dumpBytes {
			part := f.bytes[i:min(len(f.bytes), i+dumpBytes)]
			name, value := f.name, f.value
			if i > 0 {
				name, value = "", ""
			}
			line := fmt.Sprintf("%06x  %-*s %-24s %s", f.at+i, 3*dumpBytes, fmt.Sprintf("% x", part), name, value)
			if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
				return err
			}
		}
	}
	if problem != nil {
		if _, err := fmt.Fprintln(w, problem); err != nil {
			return err
		}
	}
	return problem
}

// dumpBytes is how many bytes Dump shows in a line.
const dumpBytes = 8

// layout splits a message into fields without decoding its sets.
func layout(b []byte) (fields []field, err error) {
	lim := Limits{Profile: AnyProfile}.withDefaults()
	r := reader{b: b, seen: &fields}
	if len(b) > lim.Bytes {
		return nil, r.tooLong(lim)
	}
	r.open()
	r.verify()
	h := r.header(lim)
	switch h.Kind {
	case KindFilter:
		r.code("positions", len(r.b)-r.off, h.Geometry.Bits, h.Ones)
	case KindPieces:
		d := r.pieceHead(h, lim)
		for i := uint64(0); r.err == nil && i < d.count(); i++ {
			r.take("piece", d.length)
		}
	case KindDelta:
		counts := r.u8("counts")
		r.annotate("%d set, %d cleared", counts&15, counts>>4)
		r.changed("positions set", uint64(counts&15))
		r.changed("positions cleared", uint64(counts>>4))
		r.take("changes", len(r.b)-r.off)
		r.annotate("")
	}
	if err = r.finish(); err == nil {
		fields = append(fields, field{"checksum", len(r.b), b[len(r.b):], "XXH64 of all before"})
	}
	return fields, err
}

// saw records a field, if the message is read for Dump.
func (r *reader) saw(name string, at int, value any) {
	if r.seen != nil && r.err == nil {
		*r.seen = append(*r.seen, field{name, at, r.b[at:r.off], fmt.Sprint(value)})
	}
}

// annotate describes the field that was just read, for Dump.
func (r *reader) annotate(format string, args ...any) {
	if r.seen != nil && r.err == nil {
		(*r.seen)[len(*r.seen)-1].value = fmt.Sprintf(format, args...)
	}
}
