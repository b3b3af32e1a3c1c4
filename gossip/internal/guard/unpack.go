package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// An unpacker reads MessagePack as memberlist writes it: maps from names to numbers, booleans, strings
// and bytes. It allocates memory as bytes arrive, not by the lengths in them.
type unpacker struct {
	b    []byte            // the bytes read so far
	at   int               // offset of the next value
	more func(n int) error // reads until n bytes are in b; nil if b is complete
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

// bigEndian reads n bytes as a number.
func (u *unpacker) bigEndian(n int) (uint64, error) {
	b, err := u.take(n)
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, err
}

// mapLen reads the beginning of a map of at most 15 entries.
func (u *unpacker) mapLen() (int, error) {
	first, err := u.bigEndian(1)
	if err == nil && first&0xf0 != 0x80 {
		err = u.wrong(byte(first), "a short map")
	}
	return int(first & 0x0f), err
}

type valueKind string

const (
	kindNumber valueKind = "a number"
	kindFlag   valueKind = "a boolean" // 0 or 1
	kindText   valueKind = "text"      // or bytes; nil is empty
)

// value reads a value: a number of at most most, or a text of at most most bytes.
func (u *unpacker) value(want valueKind, most uint64) (number uint64, text []byte, err error) {
	first, err := u.bigEndian(1)
	if err != nil {
		return 0, nil, err
	}
	kind, number := kindNumber, first
	switch {
	case first < 0x80:
	case first >= 0xcc && first <= 0xcf:
		number, err = u.bigEndian(1 << (first - 0xcc))
	case first >= 0xd0 && first <= 0xd3: // signed; one below zero is greater than any bound once it is widened
		n := 1 << (first - 0xd0)
		number, err = u.bigEndian(n)
		if number>>(8*n-1) != 0 {
			number = 1 << 63
		}
	case first == 0xc2, first == 0xc3:
		kind, number = kindFlag, first&1
	case first&0xe0 == 0xa0:
		kind, number = kindText, first&0x1f
	case first == 0xc0:
		kind, number = kindText, 0
	case first == 0xd9, first == 0xc4:
		kind = kindText
		number, err = u.bigEndian(1)
	case first == 0xda, first == 0xc5:
		kind = kindText
		number, err = u.bigEndian(2)
	default:
		kind = ""
	}
	switch {
	case err != nil:
	case kind != want:
		err = u.wrong(byte(first), string(want))
	case number > most:
		err = fmt.Errorf("%w: %s of %d before byte %d, at most %d", errNotPacked, kind, number, u.at, most)
	case kind == kindText:
		text, err = u.take(int(number))
	}
	return number, text, err
}

func (u *unpacker) wrong(first byte, want string) error {
	return fmt.Errorf("%w: 0x%02x before byte %d, want %s", errNotPacked, first, u.at, want)
}

// readInto returns a function that reads from r until n bytes are in u.b. It calls room before it
// enlarges the buffer.
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
		return wire.Unexpected(err)
	}
}

// AliveMessage returns memberlist's message that a peer is alive.
func AliveMessage(c Claim) []byte {
	return Pack(msgAlive, "Incarnation", uint32(c.Incarnation), "Node", c.Name,
		"Addr", c.Addr.Addr().AsSlice(), "Port", c.Addr.Port(), "Meta", c.Meta, "Vsn", c.Versions)
}

// Pack returns a message of a kind with up to 15 fields, given as names and values in turn. Values are
// numbers of 8, 16 and 32 bits, booleans, and texts of at most 65,535 bytes.
func Pack(kind byte, fields ...any) []byte {
	b := []byte{kind, 0x80 | byte(len(fields)/2)}
	text := func(n int) {
		if n < 32 {
			b = append(b, 0xa0|byte(n))
		} else {
			b = append(b, 0xda, byte(n>>8), byte(n))
		}
	}
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			text(len(f))
			b = append(b, f...)
		case []byte:
			text(len(f))
			b = append(b, f...)
		case bool:
			b = append(b, 0xc2|map[bool]byte{true: 1}[f])
		case uint8:
			b = append(b, 0xcc, f)
		case uint16:
			b = append(b, 0xcd, byte(f>>8), byte(f))
		case uint32:
			b = binary.BigEndian.AppendUint32(append(b, 0xce), f)
		}
	}
	return b
}
