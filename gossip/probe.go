package gossip

// ProbeExchange waits until what keeps the exchange going has ended the step that it
// was in, at once when the node is idle. It never returns while that hangs, and
// returns when the node is closed: for a check of health, which calls it from a
// goroutine of its own and looks at how long that takes.
func (n *Node) ProbeExchange() { n.inLoop(func() {}) }

// ProbePublishing is [Node.ProbeExchange] for what looks for changes of the holdings
// and publishes them. Of a node without holdings it returns at once.
func (n *Node) ProbePublishing() {
	if n.cfg.Holdings != nil {
		n.in(n.publisher, func() {})
	}
}
