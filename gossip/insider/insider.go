// Package insider has what the programs and packages of this module see of a gossip.Node beyond the names that package
// gossip promises.
package insider

import (
	"errors"
	"fmt"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// A Node is what Node.Inside of package gossip returns.
type Node interface {
	// Keepers returns the peers of which one has to be asked who has an object, since this peer keeps no
	// digests, or has only just begun to; in no particular order. asks is false if Node.Candidates knows.
	Keepers() (keepers []Keeper, asks bool)
	// Judge counts what an answer of a keeper was worth. mistrusted means that it is now asked after all others.
	Judge(keeper string, w Worth, mistrusted bool)

	Claim(open func() error) error                  // opens the one cache that answers at Config.Service
	Alone() error                                   // why no other peer was found; nil if one is alive or none is to be
	HalfMembers() []HalfMember                      // members only by half, by name
	SettingsDiffer() []SettingsDiffer               // live members whose settings differ from this one's, by name
	Digest(peer string) (f *digest.Filter, ok bool) // the replica of a peer's digest
	SetJoin(entries []string) error                 // replaces Config.Join
	SetPublishing(p exchange.Publishing) error      // replaces Advanced.Publish
	SetSettings(settings map[string]uint64)         // replaces Advanced.Settings
	ProbeExchange()                                 // waits until the loop of the exchange has ended its present step
	ProbePublishing()                               // likewise of the loop that publishes
}

// A Keeper is a live peer that keeps the digests of all.
type Keeper struct {
	Name string
	Near bool // it is in this peer's zone, or neither is in one
}

// Worth is what an answer of a peer that keeps digests was worth.
type Worth uint8

const (
	Right    Worth = iota // a peer that it named had the object
	Wrong                 // it had not, though others that keep digests name it as well, or cannot be asked
	Misled                // it had not, and another one that keeps digests does not name it
	Withheld              // it named nobody, and a peer that another one named had the object
)

// ErrNotYet is the answer of a peer that does not have all digests yet.
var ErrNotYet = errors.New("the peer does not have all digests yet")

// Hearing says whether this peer and another one hear each other.
type Hearing uint8

const (
	HearsUnknown Hearing = iota // the other one has not said yet
	Hears                       // it counts this peer as alive
	HearsStreams                // likewise, but packets of one of the two are lost, and only streams arrive
	HearsOthers                 // likewise, but it does not answer this one's probes, and only others reach both
	HearsNot                    // this peer counts it as alive, and it does not count this one so
	// it opens streams, and does not answer at the address that it advertises: it is no member
	Unheard
)

func (h Hearing) String() string {
	return [...]string{"", "yes", "streams only", "others only", "no", "unheard"}[min(h, Unheard)]
}

// A HalfMember is a peer that is a member only by half, for half a minute or so already.
type HalfMember struct {
	Name, Addr string // of gossip, as it advertises it
	Hearing    Hearing
}

func (h HalfMember) String() string {
	switch h.Hearing {
	case HearsStreams:
		return fmt.Sprintf("%s at %s and this peer reach each other by TCP and not by UDP: open UDP to the gossip "+
			"port at both", h.Name, h.Addr)
	case HearsOthers:
		return fmt.Sprintf("%s at %s does not answer this peer, and only others reach both: open UDP and TCP to the gossip "+
			"port and to the port for clients at both", h.Name, h.Addr)
	case HearsNot:
		return fmt.Sprintf("%s at %s does not hear this peer: open UDP and TCP to this one's gossip port, or "+
			"advertise an address and port that it reaches", h.Name, h.Addr)
	}
	return fmt.Sprintf("%s connects, and cannot be heard at %s, which it advertises: open UDP and TCP to that, or "+
		"advertise there an address and port that this peer reaches", h.Name, h.Addr)
}

// SettingsDiffer is a member that has other settings than this one for something that both have: see Advanced.Settings
// of package gossip.
type SettingsDiffer struct {
	Member string
	Names  []string // of the settings, in order
}
