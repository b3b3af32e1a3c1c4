package exchange

import (
	"errors"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// Sentinels; test with [errors.Is].
var (
	// ErrMalformed: PROTOCOL.md does not allow the message. Its sender is broken or hostile. The
	// message is dropped and counted.
	ErrMalformed = wire.ErrMalformed

	// ErrVersion: the two sides have no protocol version in common, until one of them is upgraded.
	ErrVersion = errors.New("incompatible protocol version")

	// ErrSecret: the two sides have different secrets, or only one has a secret.
	ErrSecret = errors.New("the cluster secrets differ")

	// ErrNameTaken: another live peer has the name.
	ErrNameTaken = errors.New("the name is taken by another live peer")

	// ErrCanary: the two sides hash keys differently, because their digest seeds or programs
	// differ. A digest of one means nothing to the other.
	ErrCanary = errors.New("the peers hash keys differently")

	// ErrMembers: the other side has as many members as it may have, until one is gone or its limit is raised.
	ErrMembers = errors.New("more members than the limit")

	// ErrCluster: the two sides are of clusters with different names, or only one of them has a name.
	ErrCluster = errors.New("another cluster")

	// ErrBusy: the other side is overloaded; try again later.
	ErrBusy = errors.New("busy")
)
