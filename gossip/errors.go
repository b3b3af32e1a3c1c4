package gossip

import (
	"errors"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Why [Node.Join] could not join a peer. They come within a [JoinError] that names the peer; test
// with [errors.Is].
var (
	// ErrSecret: the peer has another secret, or only one of the two has one.
	ErrSecret = exchange.ErrSecret
	// ErrNameTaken: another live peer has this peer's name.
	ErrNameTaken = exchange.ErrNameTaken
	// ErrVersion: the peer speaks no protocol version that this one speaks.
	ErrVersion = exchange.ErrVersion
	// ErrCanary: the peer hashes keys differently, so digests would mean nothing.
	ErrCanary = exchange.ErrCanary
	// ErrUnreachable: nothing that speaks this protocol answers there.
	ErrUnreachable = errors.New("unreachable")
)

var (
	// ErrStateFile: the state file can't be used; from [New] and [Node.Close].
	ErrStateFile = errors.New("state file")
	// ErrClosed: the node was closed, or left; from methods that need it to run.
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
