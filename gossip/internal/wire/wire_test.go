package wire

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// TestTake: a length that the message does not have is refused, however large, and so is all that follows.
func TestTake(t *testing.T) {
	for _, n := range []uint64{0, 1, 9, 10, 11, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 9, math.MaxUint64} {
		for _, off := range []int{0, 1, 10} {
			r := Reader{Message: "test", B: make([]byte, 10), Off: off}
			got, there := r.Take("field", n), n <= uint64(10-off)
			if there != (r.Err == nil) || there && (uint64(len(got)) != n || r.Off != off+int(n)) || !there && (got != nil || r.Off != off) {
				t.Errorf("Take(%d) at %d of 10 bytes = %d bytes, %v, now at %d", n, off, len(got), r.Err, r.Off)
			}
			var wrong *FormatError
			if !there && (!errors.As(r.Err, &wrong) || wrong.Field != "field" || wrong.Offset != off || !errors.Is(r.Err, ErrMalformed)) {
				t.Errorf("Take(%d) at %d: %v", n, off, r.Err)
			}
			if first := r.Err; first != nil && (r.Take("next", 0) != nil || r.Byte("next") != 0 || r.Uvarint("next") != 0 || r.Count("next", 1) != 0 || r.End() != first) {
				t.Errorf("after %v, there are fields", first)
			}
		}
	}
}

// TestCount: elements are announced only as far as the message has room for them.
func TestCount(t *testing.T) {
	for _, c := range []struct {
		b    string
		each int
		want int
		ok   bool
	}{
		{"\x00", 1, 0, true},
		{"\x02ab", 1, 2, true},
		{"\x02abc", 2, 2, false},
		{"\x02abcd", 2, 2, true},
		{"\x03ab", 1, 3, false},
		{"\x80\x00", 1, 0, false}, // not minimal
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1, 0, false},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 1, 0, false}, // beyond 64 bits
		{"", 1, 0, false},
	} {
		r := Reader{B: []byte(c.b)}
		if got := r.Count("n", c.each); (r.Err == nil) != c.ok || c.ok && got != c.want || !c.ok && got != 0 {
			t.Errorf("Count(%q, each %d) = %d, %v", c.b, c.each, got, r.Err)
		}
	}
}

// TestShort: each field is refused if its last byte is missing.
func TestShort(t *testing.T) {
	for name, c := range map[string]struct {
		b    string
		read func(r *Reader) string
		want string
	}{
		"Byte":    {"\x07", func(r *Reader) string { return fmt.Sprint(r.Byte("f")) }, "7"},
		"Uint24":  {"\x01\x00\x02", func(r *Reader) string { return fmt.Sprint(r.Uint24("f")) }, "131073"},
		"Uint32":  {"\x01\x00\x00\x02", func(r *Reader) string { return fmt.Sprint(r.Uint32("f")) }, "33554433"},
		"Uint64":  {"\x01\x00\x00\x00\x00\x00\x00\x01", func(r *Reader) string { return fmt.Sprint(r.Uint64("f")) }, "72057594037927937"},
		"NonZero": {"\x01\x00\x00\x00\x00\x00\x00\x00", func(r *Reader) string { return fmt.Sprint(r.NonZero("f")) }, "1"},
		"Uvarint": {"\x81\x01", func(r *Reader) string { return fmt.Sprint(r.Uvarint("f")) }, "129"},
		"String8": {"\x02ab", func(r *Reader) string { return r.String8("f") }, "ab"},
	} {
		r := Reader{B: []byte(c.b)}
		if got := c.read(&r); got != c.want || r.End() != nil {
			t.Errorf("%s of %x = %s, %v, want %s", name, c.b, got, r.End(), c.want)
		}
		r = Reader{B: []byte(c.b[:len(c.b)-1])}
		if got := c.read(&r); r.Err == nil || got != "" && got != "0" {
			t.Errorf("%s without its last byte = %s, %v", name, got, r.Err)
		}
	}
}
