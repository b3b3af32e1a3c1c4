package node

import "time"

const (
	certificateLook = time.Hour           // between two looks at the certificate
	certificateSoon = 14 * 24 * time.Hour // before its end, or a third of its life, is when warnings begin
	certificateTell = 24 * time.Hour      // between two warnings
)

// certificateWatcher returns a function that warns in time before this peer's certificate runs
// out: from then on siblings refuse it, and the cluster goes on without it.
func (n *Node) certificateWatcher() func() {
	var warned time.Time
	return func() {
		from, until := n.cfg.PeerTLS.Validity()
		left, soon := time.Until(until), min(certificateSoon, until.Sub(from)/3)
		switch {
		case left <= 0:
			n.log.Error("this peer's certificate has run out: siblings refuse it; renew its files and reload", "until", until)
		case left <= soon && time.Since(warned) >= certificateTell:
			warned = time.Now()
			n.log.Warn("this peer's certificate runs out soon: renew its files and reload", "until", until)
		}
	}
}
