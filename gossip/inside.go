package gossip

import (
	"errors"

	"github.com/summarycache/summarycache/gossip/insider"
)

// Inside returns what package sibling and the command peer see of a node beyond its other methods. It is promised to
// nobody.
func (n *Node) Inside() insider.Node { return inside{n.made()} }

// inside is a [Node] with the methods of [insider.Node].
type inside struct{ *Node }

// Claim calls open, which opens the one cache that answers siblings at Config.Service. If the node has none of these or
// is closed, or has such a cache already, open is not called: siblings would find nothing that the cache advertises. An
// error of open is returned as it is, and leaves the node unclaimed.
func (n inside) Claim(open func() error) error {
	switch {
	case n.made().ctx.Err() != nil:
		return ErrClosed
	case n.cfg.Service == "":
		return errors.New("gossip: the node has no address at which siblings find what it advertises: set Service " +
			"in Config")
	case !n.claimed.CompareAndSwap(false, true):
		return errors.New("gossip: the node has a cache already: want a node for each")
	}
	err := open()
	n.claimed.Store(err == nil)
	return err
}
