package node

import "time"

const (
	certificateCheck = time.Hour // between two checks of the certificate
	// before its expiry, or a third of its lifetime if that is shorter, warnings begin
	certificateSoon = 14 * 24 * time.Hour
	certificateTell = 24 * time.Hour // between two warnings
)

// certificateWatcher returns a function that warns before this peer's certificate expires: after
// that siblings refuse the peer.
func (n *Node) certificateWatcher() func() {
	var warned time.Time
	return func() {
		from, until := n.config().PeerTLS.Validity()
		left, soon := time.Until(until), min(certificateSoon, until.Sub(from)/3)
		switch {
		case left <= 0:
			n.log.Error("this peer's certificate has expired: siblings refuse it; renew its files and reload",
				"until", until)
		case left <= soon && time.Since(warned) >= certificateTell:
			warned = time.Now()
			n.log.Warn("this peer's certificate expires soon: renew its files and reload", "until", until)
		}
	}
}
