package gossip

import "github.com/summarycache/summarycache/gossip/insider"

// Inside returns what package sibling and the command peer see of a node beyond its other methods. It is promised to
// nobody.
func (n *Node) Inside() insider.Node { return inside{n.made()} }

// inside is a [Node] with the methods of [insider.Node].
type inside struct{ *Node }
