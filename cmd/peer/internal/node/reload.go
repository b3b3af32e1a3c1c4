package node

import (
	"fmt"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// Reloadable are the settings, by name, that can change while the node runs, by [Node.Reload]
// or by its caller.
var Reloadable = map[string]bool{"log-level": true, "drain": true, "store-size": true, "default-ttl": true, "compress": true, "rules": true}

// Reload applies those of the configuration's settings that a running node can
// change and leaves all others as they are; an error changes nothing. Secrets and
// certificates are those that the configuration read from their files; a node without
// does not get any. It returns the settings whose files had changed.
func (n *Node) Reload(cfg config.Config) (files []string, err error) {
	changed, err := n.changeSecrets(cfg)
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %s", strings.TrimPrefix(err.Error(), "gossip: "))
	}
	if changed {
		files = append(files, "secret-file")
	}
	// From here on nothing fails: what can was found out when the configuration was checked.
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
