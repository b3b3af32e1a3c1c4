package node

import (
	"fmt"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// Reloadable are the settings, by name, that [Node.Reload] or whoever runs the
// node applies while it runs.
var Reloadable = map[string]bool{"log-level": true, "drain": true, "store-size": true, "default-ttl": true, "compress": true, "rules": true}

// Reload applies those of the configuration's settings that a running node can
// change and leaves all others as they are; an error changes nothing. The certificates
// between peers are those that the configuration read. So are the secrets, of a peer that
// has some and is to have some: which one it uses, which it accepts, and which its digest's
// keys are made under.
func (n *Node) Reload(cfg config.Config) error {
	if err := n.changeSecrets(cfg); err != nil {
		return fmt.Errorf("--secret-file: %s", strings.TrimPrefix(err.Error(), "gossip: "))
	}
	// From here on nothing fails: what can was found out when the configuration was checked.
	if err := n.proxy.Store().Resize(cfg.StoreSize); err != nil {
		return fmt.Errorf("--store-size: %s", strings.TrimPrefix(err.Error(), "store: "))
	}
	n.proxy.SetRules(cfg.Rules)
	if n.https != nil && cfg.HTTPS != nil {
		n.https.use(cfg.HTTPS.Certificates)
	}
	if n.cfg.PeerTLS != nil {
		n.cfg.PeerTLS.Renew(cfg.PeerTLS)
	}
	return nil
}

// ReopenAccessLog goes on in the file that is at the path of the access log by now. After
// an error it goes on in the former one.
func (n *Node) ReopenAccessLog() error {
	if n.access == nil {
		return nil
	}
	return n.access.Reopen()
}
