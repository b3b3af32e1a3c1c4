package invalidation

import (
	"fmt"
	"strconv"
	"strings"
)

// A Kind says what the name of a [Target] means.
type Kind uint8

const (
	// Identity is the object of that identity, and its variants: those whose
	// identities begin with it and a line feed.
	Identity Kind = 1
	// Prefix is all objects whose identities begin with the name.
	Prefix Kind = 2
	// Everything is all objects; it has no name. An unknown kind counts as this one.
	Everything Kind = 3
	// Tag is all objects whose responses carry that tag. An identity does not show tags, so
	// such a target matches every identity.
	Tag Kind = 4
	// Pattern is all objects whose identities, and variants' without what distinguishes them, match the
	// name by [Glob].
	Pattern Kind = 5
)

// softBit marks a soft target in the byte of its kind.
const softBit = 1 << 7

// MaxName is the length in bytes of the longest name of a [Target].
const MaxName = 1<<16 - 1

// A Target selects the objects that an invalidation removes.
type Target struct {
	Kind Kind
	Name string // at most MaxName bytes
	// Soft: the objects become stale and are not removed. They may be served like any
	// other stale object.
	Soft bool
}

// Matches reports whether the target selects, or may select, the object of an identity.
func (t Target) Matches(identity string) bool {
	switch t.Kind {
	case Identity:
		return whole(identity) == whole(t.Name)
	case Prefix:
		return strings.HasPrefix(identity, t.Name)
	case Pattern:
		return Glob(t.Name, whole(identity))
	}
	return true
}

// Glob reports whether a pattern matches s: * stands for any characters, all others for themselves. The
// loop ends: s only gets shorter.
func Glob(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, first)
	for ok {
		var piece string
		if piece, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(s, piece)
		}
		_, s, ok = strings.Cut(s, piece)
	}
	return false
}

// whole is an identity without the part that distinguishes variants.
func whole(identity string) string {
	identity, _, _ = strings.Cut(identity, "\n")
	return identity
}

func (t Target) String() string {
	name := "everything"
	switch t.Kind {
	case Identity, Pattern:
		name = t.Name
	case Prefix:
		name = t.Name + "*"
	case Tag:
		name = "tag " + t.Name
	}
	if t.Soft {
		name += " (soft)"
	}
	return name
}

// lead is the byte that an entry begins with.
func (t Target) lead() byte {
	if t.Soft {
		return byte(t.Kind) | softBit
	}
	return byte(t.Kind)
}

// Check returns an error if the target is not valid.
func (t Target) Check() error {
	switch {
	case t.Kind < Identity || t.Kind > Pattern:
		return fmt.Errorf("invalidation: kind %d is not one of 1 to 5", t.Kind)
	case t.Kind == Tag && t.Name == "":
		return fmt.Errorf("invalidation: a tag without a name")
	case t.Kind == Everything && t.Name != "":
		return fmt.Errorf("invalidation: a target of kind everything cannot have a name")
	case len(t.Name) > MaxName:
		return fmt.Errorf("invalidation: a name of %d bytes, longer than %d", len(t.Name), MaxName)
	}
	return nil
}

// A Log is the invalidations of one life of a member.
type Log struct {
	Origin uint64 // the member's ID
	Life   uint64 // of its process; never 0
}

// An ID names an invalidation, and all before it in its log.
type ID struct {
	Log
	Sequence uint64 // from 1
}

// String is three hexadecimal numbers with points between.
func (id ID) String() string { return fmt.Sprintf("%x.%x.%x", id.Origin, id.Life, id.Sequence) }

// ParseID reads what String writes.
func ParseID(s string) (id ID, ok bool) {
	var parts [3]uint64
	rest := s
	for i := range parts {
		part, after, more := strings.Cut(rest, ".")
		n, err := strconv.ParseUint(part, 16, 64)
		if err != nil || more == (i == len(parts)-1) {
			return ID{}, false
		}
		parts[i], rest = n, after
	}
	id = ID{Log{parts[0], parts[1]}, parts[2]}
	return id, id.String() == s && id.Life != 0 && id.Sequence != 0
}
