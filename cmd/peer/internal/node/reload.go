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
// change and leaves all others as they are. The certificates between peers are read
// again from their files. So are the secrets, of a peer that has some and is to have
// some: which one it uses, which it accepts, and which its digest's keys are made
// under.
func (n *Node) Reload(cfg config.Config) error {
	if err := n.changeSecrets(cfg); err != nil {
		return fmt.Errorf("--secret-file: %s", strings.TrimPrefix(err.Error(), "gossip: "))
	}
	if err := n.proxy.Store().Resize(cfg.StoreSize); err != nil {
		return fmt.Errorf("--store-size: %s", strings.TrimPrefix(err.Error(), "store: "))
	}
	if n.access != nil {
		if err := n.access.Reopen(); err != nil {
			return fmt.Errorf("--access-log: %w", err)
		}
	}
	n.proxy.SetRules(cfg.Rules)
	if n.https != nil && cfg.HTTPS != nil {
		n.https.use(cfg.HTTPS.Certificates)
	}
	if n.cfg.PeerTLS != nil {
		if err := n.cfg.PeerTLS.Reload(); err != nil {
			return fmt.Errorf("--tls-cert: %w", err)
		}
	}
	return nil
}
