package node

import (
	"fmt"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// Reloadable are the settings, by name, that [Node.Reload] or whoever runs the
// node applies while it runs.
var Reloadable = map[string]bool{"log-level": true, "drain": true, "store-size": true}

// Reload applies those of the configuration's settings that a running node can
// change and leaves all others as they are. The certificates between peers are read
// again from their files.
func (n *Node) Reload(cfg config.Config) error {
	if err := n.proxy.Store().Resize(cfg.StoreSize); err != nil {
		return fmt.Errorf("--store-size: %s", strings.TrimPrefix(err.Error(), "store: "))
	}
	if n.cfg.PeerTLS != nil {
		if err := n.cfg.PeerTLS.Reload(); err != nil {
			return fmt.Errorf("--tls-cert: %w", err)
		}
	}
	return nil
}
