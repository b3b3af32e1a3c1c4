package exchange

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// MaxAddress is the length in bytes of the longest gossip address.
const MaxAddress = 64

// Hello opens a stream.
type Hello struct {
	MinVersion, MaxVersion uint8 // protocol versions spoken
	Joining                bool  // the client asks whether its name is free
	Incarnation            uint64
	Canary                 uint32
	Name                   string
	Address                string // ip:port of gossip, as advertised
	Cluster                string `json:",omitempty"` // its name; empty if it has none
}

// extCluster is the kind of the extension with a cluster's name (PROTOCOL.md 9.1).
const extCluster = 1

// AppendTo appends the frame to dst.
func (h Hello) AppendTo(dst []byte) []byte {
	start := len(dst)
	var flags byte
	if h.Joining {
		flags = 1
	}
	dst = append(BeginFrame(dst, FrameHello), h.MinVersion, h.MaxVersion, flags)
	dst = binary.LittleEndian.AppendUint64(dst, h.Incarnation)
	dst = binary.LittleEndian.AppendUint32(dst, h.Canary)
	dst = wire.AppendString8(dst, h.Name)
	dst = wire.AppendString8(dst, h.Address)
	dst = wire.AppendExtension(dst, extCluster, h.Cluster)
	return EndFrame(dst, start)
}

// DecodeHello reads the payload of a hello. b is not retained.
func DecodeHello(b []byte) (Hello, error) {
	r := newReader("hello", b)
	h := Hello{MinVersion: r.Byte("least version"), MaxVersion: r.Byte("greatest version")}
	if h.MinVersion == 0 || h.MaxVersion < h.MinVersion {
		r.Fail("versions")
	}
	h.Joining = r.Byte("flags")&1 != 0
	h.Incarnation = r.NonZero("incarnation")
	h.Canary = r.Uint32("canary")
	h.Name, h.Address, h.Cluster = r.identity()
	if r.Err != nil {
		return Hello{}, r.Err
	}
	return h, nil
}

// identity reads the name, the address and the cluster at the end of a hello or welcome.
func (r *reader) identity() (name, address, cluster string) {
	if name = r.String8("name"); !ValidName(name) {
		r.Fail("name")
	}
	if address = r.String8("address"); address == "" || len(address) > MaxAddress {
		r.Fail("address")
	}
	if cluster = r.Extension(extCluster); !ValidName(cluster) {
		cluster = "" // of a later program, or damaged: a cluster with a name refuses it, too
	}
	return name, address, cluster
}

// Accept returns nil if a peer with these canaries can accept a stream that begins with h, and
// otherwise the reason.
func (h Hello) Accept(canaries ...uint32) error {
	return compatible(h.MinVersion, h.MaxVersion, h.Canary, canaries)
}

// Welcome answers a [Hello].
type Welcome struct {
	Version     uint8 // chosen
	Incarnation uint64
	Canary      uint32
	Known       uint64 // the client's incarnation if the server counts it as alive; otherwise 0
	Name        string
	Address     string
	Cluster     string `json:",omitempty"` // its name; empty if it has none
}

// AppendTo appends the frame to dst.
func (w Welcome) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst = append(BeginFrame(dst, FrameWelcome), w.Version)
	dst = binary.LittleEndian.AppendUint64(dst, w.Incarnation)
	dst = binary.LittleEndian.AppendUint32(dst, w.Canary)
	dst = binary.LittleEndian.AppendUint64(dst, w.Known)
	dst = wire.AppendString8(dst, w.Name)
	dst = wire.AppendString8(dst, w.Address)
	dst = wire.AppendExtension(dst, extCluster, w.Cluster)
	return EndFrame(dst, start)
}

// DecodeWelcome reads the payload of a welcome. b is not retained.
func DecodeWelcome(b []byte) (Welcome, error) {
	r := newReader("welcome", b)
	w := Welcome{Version: r.Byte("version")}
	w.Incarnation = r.NonZero("incarnation")
	w.Canary = r.Uint32("canary")
	w.Known = r.Uint64("known")
	w.Name, w.Address, w.Cluster = r.identity()
	if r.Err == nil && w.Version != ProtocolVersion {
		return Welcome{}, &wire.FormatError{Message: "welcome", Field: "version", Err: ErrVersion}
	}
	if r.Err != nil {
		return Welcome{}, r.Err
	}
	return w, nil
}

// refusals are the errors by code.
var refusals = [...]error{
	1: ErrVersion,
	2: ErrSecret,
	3: ErrNameTaken,
	4: ErrCanary,
	5: ErrBusy,
	6: ErrMalformed,
	7: ErrMembers,
	9: ErrCluster, // 8 is that of a vector: it means nothing
}

// Refusal answers a [Hello] that the server does not accept. It is an error that wraps the sentinel
// of its code.
type Refusal struct {
	Err  error  // a sentinel of this package
	Text string // the server's explanation; at most 200 bytes
}

func (e *Refusal) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("refused: %v", e.Err)
	}
	return fmt.Sprintf("refused: %v (%s)", e.Err, e.Text)
}

func (e *Refusal) Unwrap() error { return e.Err }

// AppendTo appends the frame to dst. An Err without a code is sent as malformed.
func (e *Refusal) AppendTo(dst []byte) []byte {
	start := len(dst)
	code := byte(6)
	for c, err := range refusals {
		if err != nil && err == e.Err {
			code = byte(c)
		}
	}
	text := e.Text
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "")
	}
	dst = append(BeginFrame(dst, FrameRefuse), code)
	dst = wire.AppendString8(dst, text)
	return EndFrame(dst, start)
}

// DecodeRefusal reads the payload of a refuse. Text is made printable, since it will be logged.
func DecodeRefusal(b []byte) (*Refusal, error) {
	r := newReader("refuse", b)
	code := r.Byte("code")
	text := r.String8("text")
	if err := r.End(); err != nil {
		return nil, err
	}
	e := &Refusal{Err: ErrMalformed, Text: printable(text)}
	if int(code) < len(refusals) && refusals[code] != nil {
		e.Err = refusals[code]
	}
	return e, nil
}

func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\uFFFD' {
			return '?'
		}
		return c
	}, s)
}
