package node

import (
	"fmt"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// Reloadable has the names of the settings that [Node.Reload] or its caller can change while the
// node runs.
var Reloadable = map[string]bool{"log-level": true, "drain": true, "store-size": true, "default-ttl": true, "compress": true, "rules": true}

// Reload applies the settings that a running node can change, and ignores all others. After
// an error nothing has changed. It uses the secrets and certificates that were read with the
// configuration; a node that was started without any does not get them. It returns the settings
// whose files have changed.
func (n *Node) Reload(cfg config.Config) (files []string, err error) {
	changed, err := n.changeSecrets(cfg)
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %s", strings.TrimPrefix(err.Error(), "gossip: "))
	}
	if changed {
		files = append(files, "secret-file")
	}
	// Nothing fails from here on: the configuration was checked before.
	if err := n.proxy.Store().Resize(cfg.StoreSize); err != nil {
		return nil, fmt.Errorf("--store-size: %s", strings.TrimPrefix(err.Error(), "store: "))
	}
	n.proxy.SetRules(cfg.Rules)
	if n.cfg.PeerTLS.Renew(cfg.PeerTLS) {
		files = append(files, "tls-cert")
	}
	if n.https != nil && cfg.HTTPSListen != "" && n.https.use(cfg.Certificates) {
		files = append(files, "https-cert")
	}
	return files, nil
}

// ReopenAccessLog opens the file at the path of the access log again. After an error, the log
// continues in the former file.
func (n *Node) ReopenAccessLog() error {
	if n.access == nil {
		return nil
	}
	return n.access.Reopen()
}
