package exchange

import (
	"errors"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// Sentinels; test with [errors.Is].
var (
	// ErrMalformed: a message that PROTOCOL.md does not allow. The sender is
	// broken or hostile; the message is dropped and counted.
	ErrMalformed = wire.ErrMalformed

	// ErrVersion: no protocol version is spoken by both sides. It is final until
	// one of them is upgraded.
	ErrVersion = errors.New("incompatible protocol version")

	// ErrSecret: the two sides have different secrets, or only one has a secret.
	ErrSecret = errors.New("the cluster secrets differ")

	// ErrNameTaken: another live peer has the name.
	ErrNameTaken = errors.New("the name is taken by another live peer")

	// ErrCanary: the two sides hash keys differently, by another digest seed or
	// another program; their digests would be noise to each other.
	ErrCanary = errors.New("the peers hash keys differently")

	// ErrBroken: a stream ended within an answer.
	ErrBroken = errors.New("the stream broke")

	// ErrBusy: the other side has too much to do; ask again later.
	ErrBusy = errors.New("busy")
)

// FormatError says which field of a message was wrong, and where.
type FormatError = wire.FormatError
