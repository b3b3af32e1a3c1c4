package gossip

import (
	"errors"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Why [Node.Join] could not join a peer, within a [JoinError] that says which; test
// with [errors.Is].
var (
	// ErrSecret: it has another secret, or only one of the two has one.
	ErrSecret = exchange.ErrSecret
	// ErrNameTaken: another live peer has this one's name.
	ErrNameTaken = exchange.ErrNameTaken
	// ErrVersion: it speaks no protocol version that this one speaks.
	ErrVersion = exchange.ErrVersion
	// ErrCanary: it hashes keys differently, so digests would mean nothing.
	ErrCanary = exchange.ErrCanary
	// ErrUnreachable: nothing that speaks this protocol answers there.
	ErrUnreachable = errors.New("unreachable")
)

var (
	// ErrStateFile: the state file can't be used; from [New] and [Node.Close].
	ErrStateFile = errors.New("state file")
	// ErrClosed: the node was closed, or left; from what needs it to run.
	ErrClosed = errors.New("gossip: node is closed")
)

// JoinError is why joining through one seed failed. [Node.Join] returns them
// joined.
type JoinError struct {
	Seed string // as configured
	Err  error
}

func (e *JoinError) Error() string { return "gossip: join " + e.Seed + ": " + e.Err.Error() }
func (e *JoinError) Unwrap() error { return e.Err }
