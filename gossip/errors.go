package gossip

import (
	"errors"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Reasons why [Node.Join] could not join a peer. A [JoinError] wraps them; test with [errors.Is].
var (
	// ErrSecret: the peer has another secret, or only one of the two has one.
	ErrSecret = exchange.ErrSecret
	// ErrNameTaken: another live peer has this peer's name.
	ErrNameTaken = exchange.ErrNameTaken
	// ErrVersion: the two peers have no protocol version in common.
	ErrVersion = exchange.ErrVersion
	// ErrCanary: the peer hashes keys differently, so digests would mean nothing.
	ErrCanary = exchange.ErrCanary
	// ErrCluster: the peer is of a cluster with another name, or only one of the two has one.
	ErrCluster = exchange.ErrCluster
	// ErrMembers: there are more live peers than Limits.Members, and some are no members. The node goes on trying to
	// join. [Node.Invalidate] returns it, too.
	ErrMembers = exchange.ErrMembers
	// ErrUnreachable: there is no peer at the address, or it does not answer.
	ErrUnreachable = errors.New("unreachable")
)

var (
	// ErrStateFile: the state file cannot be used; from [New] and [Node.Close].
	ErrStateFile = errors.New("state file")
	errNoContext = errors.New("gossip: the context is nil: pass context.Background() if only the call itself ends it")
	// ErrClosed: the node was closed, or has left.
	ErrClosed = errors.New("gossip: node is closed")
)

// JoinError is the reason why joining through one entry of Config.Join failed.
type JoinError struct {
	Seed string // the entry
	Err  error
}

func (e *JoinError) Error() string { return "gossip: join " + e.Seed + ": " + e.Err.Error() }
func (e *JoinError) Unwrap() error { return e.Err }
