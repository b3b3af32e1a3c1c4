package exchange

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// Longest fields of [Meta], in bytes.
const (
	MaxMeta    = 220
	MaxService = 63
	MaxZone    = 14
)

// MaxSecrets is how many secrets a peer may accept at a time.
const MaxSecrets = 4

// SettingBytes is the length of an element of Meta.Settings, and MaxSettings their number.
const (
	SettingBytes = 4 + 2
	MaxSettings  = 16
)

// Kinds of the extensions with Meta.Settings and Meta.Farewell.
const (
	extSettings = 2
	extFarewell = 3
)

// FarewellBytes is the length of Meta.Farewell.
const FarewellBytes = 8

const metaMagic = 0x53

// Meta is the metadata of a peer. Membership distributes it.
type Meta struct {
	MinVersion, MaxVersion uint8  // protocol versions spoken
	Incarnation            uint64 // this life of the peer; never 0
	Canary                 uint32 // shows how the peer hashes keys
	Service                string // host:port where it answers siblings; may be empty
	// Secrets are the names of the secrets that it accepts, the one it uses first; nil if it has none.
	Secrets []uint32
	Zone    string `json:",omitempty"` // where it runs, see [ValidZone]; empty if it says nothing
	Light   bool   `json:",omitempty"` // it keeps no digests of others
	Spare   bool   `json:",omitempty"` // a flag of light peers, which this version does not set and gives no meaning
	// Settings are sums of settings that should be alike at all members that have them: SettingBytes each, the hash of
	// a name and a sum.
	Settings string `json:",omitempty"`
	// Farewell is the beginning of the SHA-256 of the key that signs the peer's farewell; empty if its address does.
	Farewell string `json:",omitempty"`
}

// keepsNone and spare are the bits of the metadata's flags for Meta.Light and Meta.Spare.
const (
	keepsNone = 1
	spare     = 2
)

// AppendTo appends the metadata to dst. Service, Secrets and Zone must be within their limits.
func (m Meta) AppendTo(dst []byte) []byte {
	dst = append(dst, metaMagic, m.MinVersion, m.MaxVersion)
	dst = binary.LittleEndian.AppendUint64(dst, m.Incarnation)
	dst = binary.LittleEndian.AppendUint32(dst, m.Canary)
	dst = wire.AppendString8(dst, m.Service)
	dst = append(dst, byte(4*len(m.Secrets)))
	for _, id := range m.Secrets {
		dst = binary.LittleEndian.AppendUint32(dst, id)
	}
	if m.Zone != "" || m.Light || m.Settings+m.Farewell != "" {
		dst = wire.AppendString8(dst, m.Zone)
	}
	switch {
	case m.Light && m.Spare:
		dst = append(dst, keepsNone|spare)
	case m.Light:
		dst = append(dst, keepsNone)
	case m.Settings+m.Farewell != "":
		dst = append(dst, 0)
	}
	return wire.AppendExtension(wire.AppendExtension(dst, extSettings, m.Settings), extFarewell, m.Farewell)
}

// ValidZone reports whether a peer may be in a zone of that name: 1 to 14 letters, digits and "._-:".
func ValidZone(zone string) bool { return len(zone) <= MaxZone && ValidName(zone) }

// DecodeMeta reads the metadata of a peer. Bytes after the known fields are ignored. b is not
// retained.
func DecodeMeta(b []byte) (Meta, error) {
	r := newReader("metadata", b)
	if r.Byte("magic") != metaMagic {
		r.FailAt(0, "magic", ErrMalformed)
	}
	m := Meta{MinVersion: r.Byte("least version"), MaxVersion: r.Byte("greatest version")}
	if m.MinVersion == 0 || m.MaxVersion < m.MinVersion {
		r.Fail("versions")
	}
	m.Incarnation = r.NonZero("incarnation")
	m.Canary = r.Uint32("canary")
	if m.Service = r.String8("service"); len(m.Service) > MaxService {
		r.Fail("service")
	}
	ids := r.String8("secrets")
	if len(ids)%4 != 0 || len(ids) > 4*MaxSecrets {
		r.Fail("secrets")
	}
	for ; r.Err == nil && len(ids) > 0; ids = ids[4:] {
		m.Secrets = append(m.Secrets, binary.LittleEndian.Uint32([]byte(ids)))
	}
	if r.Err == nil && r.Off < len(b) {
		if m.Zone = r.String8("zone"); m.Zone != "" && !ValidZone(m.Zone) {
			r.Fail("zone")
		}
	}
	if r.Err == nil && r.Off < len(b) {
		flags := r.Byte("flags")
		m.Light = flags&keepsNone != 0
		m.Spare = m.Light && flags&spare != 0
		if m.Settings = r.Extension(extSettings); len(m.Settings)%SettingBytes != 0 || len(m.Settings) > SettingBytes*MaxSettings {
			m.Settings = ""
		}
		if m.Farewell = r.Extension(extFarewell); len(m.Farewell) != FarewellBytes {
			m.Farewell = ""
		}
	}
	if r.Err != nil {
		return Meta{}, r.Err
	}
	return m, nil
}

// Compatible returns nil if a peer with metadata m can exchange digests with one that has these
// canaries, and otherwise the reason.
func (m Meta) Compatible(canaries ...uint32) error {
	return compatible(m.MinVersion, m.MaxVersion, m.Canary, canaries)
}

func compatible(least, greatest uint8, canary uint32, canaries []uint32) error {
	switch {
	case least > ProtocolVersion || greatest < ProtocolVersion:
		return fmt.Errorf("%w: theirs is %d to %d, ours %d", ErrVersion, least, greatest, ProtocolVersion)
	case !slices.Contains(canaries, canary):
		return ErrCanary
	}
	return nil
}
