package node

import "time"

const (
	certificateLook = time.Hour           // between two looks at the certificate
	certificateSoon = 14 * 24 * time.Hour // before its end that it is told of, or a third of its life
	certificateTell = 24 * time.Hour      // between two warnings of that
)

// watchCertificate tells in time that this peer's certificate runs out: from then on
// siblings refuse it, and the cluster goes on without it and without a word.
func (n *Node) watchCertificate() {
	ticker := time.NewTicker(certificateLook)
	defer ticker.Stop()
	for told := (time.Time{}); ; {
		from, until := n.cfg.PeerTLS.Validity()
		left, soon := time.Until(until), min(certificateSoon, until.Sub(from)/3)
		switch {
		case left <= 0:
			n.log.Error("this peer's certificate has run out: siblings refuse it; renew its files and reload", "until", until)
		case left <= soon && time.Since(told) >= certificateTell:
			told = time.Now()
			n.log.Warn("this peer's certificate runs out soon: renew its files and reload", "until", until)
		}
		select {
		case <-ticker.C:
		case <-n.stopped:
			return
		}
	}
}
