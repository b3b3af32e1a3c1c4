package gossip

import (
	"errors"
	"fmt"
	"io"
)

// An unpacker reads MessagePack, as memberlist writes it: maps from names to numbers,
// strings and booleans. It takes nothing for true that it has not read: no length is
// believed before so many bytes are there.
type unpacker struct {
	b    []byte            // what has been read
	at   int               // up to where it has been looked at
	more func(n int) error // reads until n bytes are in b; nil if b is everything
}

var errNotPacked = errors.New("not memberlist's encoding")

func (u *unpacker) take(n int) ([]byte, error) {
	if len(u.b)-u.at < n {
		if u.more == nil {
			return nil, fmt.Errorf("%w: ends at byte %d, within a value", errNotPacked, len(u.b))
		}
		if err := u.more(u.at + n); err != nil {
			return nil, err
		}
	}
	u.at += n
	return u.b[u.at-n : u.at], nil
}

// number reads n bytes, the highest first.
func (u *unpacker) number(n int) (uint64, error) {
	b, err := u.take(n)
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, err
}

func (u *unpacker) wrong(what string, first byte) error {
	return fmt.Errorf("%w: 0x%02x at byte %d, want %s", errNotPacked, first, u.at-1, what)
}

// mapLen reads the beginning of a map of at most 15 entries.
func (u *unpacker) mapLen() (int, error) {
	first, err := u.number(1)
	if err != nil {
		return 0, err
	}
	if first&0xf0 != 0x80 {
		return 0, u.wrong("a short map", byte(first))
	}
	return int(first & 0x0f), nil
}

// text reads a string or bytes, at most limit of them. Nil is none.
func (u *unpacker) text(limit int) ([]byte, error) {
	first, err := u.number(1)
	if err != nil {
		return nil, err
	}
	var n uint64
	switch {
	case first&0xe0 == 0xa0:
		n = first & 0x1f
	case first == 0xd9, first == 0xc4:
		n, err = u.number(1)
	case first == 0xda, first == 0xc5:
		n, err = u.number(2)
	case first == 0xc0:
	default:
		return nil, u.wrong("text", byte(first))
	}
	if err == nil && n > uint64(limit) {
		err = fmt.Errorf("%w: text of %d bytes at byte %d, more than %d", errNotPacked, n, u.at, limit)
	}
	if err != nil {
		return nil, err
	}
	return u.take(int(n))
}

// uint reads a number from 0 to limit.
func (u *unpacker) uint(limit uint64) (uint64, error) {
	first, err := u.number(1)
	if err != nil {
		return 0, err
	}
	v := first
	switch {
	case first < 0x80:
	case first >= 0xcc && first <= 0xcf:
		v, err = u.number(1 << (first - 0xcc))
	case first >= 0xd0 && first <= 0xd3: // signed; one below zero is greater than any limit once it is widened
		n := 1 << (first - 0xd0)
		v, err = u.number(n)
		if v>>(8*n-1) != 0 {
			v = 1 << 63
		}
	default:
		return 0, u.wrong("a number", byte(first))
	}
	if err == nil && v > limit {
		err = fmt.Errorf("%w: number beyond %d before byte %d", errNotPacked, limit, u.at)
	}
	return v, err
}

func (u *unpacker) boolean() (bool, error) {
	first, err := u.number(1)
	if err == nil && first != 0xc2 && first != 0xc3 {
		err = u.wrong("a boolean", byte(first))
	}
	return first == 0xc3, err
}

// readInto returns a function that reads from r until n bytes are in u.b, after it
// asked for the room.
func (u *unpacker) readInto(r io.Reader, room func(total int) error) func(n int) error {
	return func(n int) error {
		if n > cap(u.b) {
			total := max(n, 2*cap(u.b), 1<<10)
			if err := room(total); err != nil {
				return err
			}
			u.b = append(make([]byte, 0, total), u.b...)
		}
		had := len(u.b)
		got, err := io.ReadAtLeast(r, u.b[had:cap(u.b)], n-had)
		u.b = u.b[:had+got]
		return unexpected(err)
	}
}
