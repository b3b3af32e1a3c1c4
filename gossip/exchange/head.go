package exchange

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// ID stands for a peer's name in short messages: the first eight bytes of the name's SHA-256.
type ID uint64

// IDOf returns the ID of the peer called name.
func IDOf(name string) ID {
	sum := sha256.Sum256([]byte(name))
	return ID(binary.LittleEndian.Uint64(sum[:]))
}

// MaxName is the length in bytes of the longest peer name.
const MaxName = 63

// ValidName reports whether name is a valid name of a peer: 1 to [MaxName] bytes of letters, digits
// and "._-:".
func ValidName(name string) bool {
	if len(name) == 0 || len(name) > MaxName {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-', c == ':':
		default:
			return false
		}
	}
	return true
}

// Version orders all publications of an origin: by incarnation, then by epoch, then by sequence.
// The zero Version precedes all others and means that none is known. A [digest.Version] identifies
// contents, whatever the incarnation: see [Version.Digest].
type Version struct {
	Incarnation uint64 // a life of the origin's process; 0 only in the zero Version
	Epoch       uint64 // of the digest
	Sequence    uint64 // of the digest
}

// Digest returns the digest's own version if it was published as v with this state.
func (v Version) Digest(state uint64) digest.Version {
	return digest.Version{Epoch: v.Epoch, Sequence: v.Sequence, State: state}
}

// Compare returns -1, 0 or +1 as v precedes, equals or follows w.
func (v Version) Compare(w Version) int {
	return cmp.Or(
		cmp.Compare(v.Incarnation, w.Incarnation),
		cmp.Compare(v.Epoch, w.Epoch),
		cmp.Compare(v.Sequence, w.Sequence),
	)
}

// IsZero reports whether v is the zero Version.
func (v Version) IsZero() bool { return v == Version{} }

func (v Version) String() string {
	return fmt.Sprintf("%x.%d.%d", v.Incarnation, v.Epoch, v.Sequence)
}

// Head describes a version of a digest.
type Head struct {
	Origin  ID
	Version Version
	State   uint64 // set hash of the digest at that version: see [digest.Version]
	Keys    uint64 // number of keys held at that version, as stated by the origin
}

// LogValue makes a Head one readable attribute.
func (h Head) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("version", h.Version.String()),
		slog.String("state", fmt.Sprintf("%016x", h.State)),
		slog.Uint64("keys", h.Keys),
	)
}

// A reader adds to [wire.Reader] the fields that only the exchange's messages have.
type reader struct{ wire.Reader }

func newReader(message string, b []byte) *reader {
	return &reader{wire.Reader{Message: message, B: b}}
}

// minHead is the length of the shortest encoded head.
const minHead = 8 + 8 + 8 + 3

func (h Head) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Origin))
	dst = binary.LittleEndian.AppendUint64(dst, h.Version.Incarnation)
	dst = binary.AppendUvarint(dst, h.Version.Epoch)
	dst = binary.AppendUvarint(dst, h.Version.Sequence)
	dst = binary.LittleEndian.AppendUint64(dst, h.State)
	return binary.AppendUvarint(dst, h.Keys)
}

func (r *reader) head() Head {
	h := Head{Origin: ID(r.Uint64("origin"))}
	h.Version.Incarnation = r.NonZero("incarnation")
	h.Version.Epoch = r.Uvarint("epoch")
	h.Version.Sequence = r.Uvarint("sequence")
	h.State = r.Uint64("state")
	h.Keys = r.Uvarint("keys")
	if r.Err != nil {
		return Head{}
	}
	return h
}

// sum is a hash of a head. Its lower half is the head's mark.
func (h Head) sum() uint64 {
	var b [MaxAdvert]byte
	return uint64(digest.KeyOf(0, h.append(b[:0])))
}

func (h Head) mark() uint32 { return uint32(h.sum()) }
