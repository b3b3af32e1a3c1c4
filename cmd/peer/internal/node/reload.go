package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip/httpcache"
)

// fixed has the names of the settings that a running node keeps as they were at its start.
var fixed = []string{
	"name", "zone", "zone-cost", "listen", "admin", "gossip", "advertise", "https", "store", "digests", // where it is and what it has open
	"memory-limit", "memory-size", "max-members", "max-connections", "max-header-size", "send-timeout", // what was divided then
	"objects", "false-positives", "publish", "squid-peer", "otlp-endpoint", "join-timeout",
}

// config returns the configuration that is in effect. It must not be changed.
func (n *Node) config() *config.Config { return n.cfg.Load() }

func (n *Node) configure(c config.Config) {
	c.ClientBodyTimeout, c.SendTimeout = cmp.Or(c.ClientBodyTimeout, time.Minute), cmp.Or(c.SendTimeout, time.Minute)
	n.cfg.Store(&c)
}

// settings returns what the proxy can change while it runs.
func (n *Node) settings(c *config.Config) proxy.Settings {
	s := proxy.Settings{
		Origin: c.Origin, PreserveHost: c.PreserveHost == "on", Sites: c.Sites,
		TrustedProxies: c.TrustedProxies, PurgeClients: c.PurgeClients, Rules: c.Rules,
		MaxHeader: int(c.MaxHeaderSize), PassFields: c.PassFields,
		ConnectTimeout: c.ConnectTimeout, FirstByteTimeout: c.FirstByteTimeout,
	}
	if !c.Reverse() {
		s.AllowClient = func(remote string) bool { return n.proxyAccess().Client(remote) }
		s.AllowConnect = func(_, port string) bool { return n.proxyAccess().Port(port) }
	}
	return s
}

// tuning returns what the cache can change while it runs.
func tuning(c *config.Config) httpcache.Tuning {
	return httpcache.Tuning{SiblingMaxAge: c.SiblingMaxAge, Compare: c.SiblingCompare, BetweenBytesTimeout: cmp.Or(c.BetweenBytesTimeout, time.Minute)}
}

// Reload reads the configuration again and applies what can change.
func (n *Node) Reload(r admin.ReloadRequest) (report admin.ReloadReport, err error) {
	if n.reread == nil {
		return report, errors.New("this peer has no configuration that can be read again")
	}
	n.reload.Lock()
	defer n.reload.Unlock()
	report, err = n.reread(r.DryRun)
	if !r.DryRun {
		last := admin.Reloading{At: time.Now(), Good: n.reloads.Load().Good}
		if err != nil {
			last.Error = err.Error()
		} else {
			last.Good = last.At
		}
		n.reloads.Store(&last)
	}
	return report, err
}

// Apply applies the settings that a running node can change. After an error nothing has changed, and
// nothing changes in a dry run. It uses the secrets and certificates that were read with the configuration. It returns the settings
// whose files have changed, and those that differ and are kept until the next start: among them are
// those of secrets, TLS and the PROXY protocol if there were none before or are none now.
func (n *Node) Apply(next config.Config, dryRun bool) (files, kept []string, err error) {
	old := n.config()
	keep := slices.Clone(fixed)
	if (old.PeerTLS == nil) != (next.PeerTLS == nil) {
		keep = append(keep, "tls-cert", "tls-key", "tls-ca")
		next.PeerTLS = nil
	}
	if (old.Secret == nil) != (next.Secret == nil) {
		keep = append(keep, "secret-file")
		next.Secret, next.AcceptSecrets = old.Secret, old.AcceptSecrets
	}
	if (len(old.ProxyProtocol) == 0) != (len(next.ProxyProtocol) == 0) {
		keep = append(keep, "proxy-protocol") // the listeners read no headers, or expect some
	}
	kept = next.Keep(old, keep)
	changed, err := n.changeSecrets(&next, dryRun)
	if err != nil {
		return nil, nil, fmt.Errorf("--secret-file: %s", strings.TrimPrefix(err.Error(), "gossip: "))
	}
	if changed {
		files = append(files, "secret-file")
	}
	if old.PeerTLS.Differs(next.PeerTLS) {
		files = append(files, "tls-cert")
	}
	if n.https != nil && next.HTTPSListen != "" && n.https.differs(next.Certificates) {
		files = append(files, "https-cert")
	}
	if next.AdminToken != old.AdminToken {
		files = append(files, "admin-token-file")
	}
	if dryRun {
		return files, kept, nil
	}
	access := n.access.Load()
	if next.AccessLog != old.AccessLog || next.AccessLogFormat != old.AccessLogFormat {
		if access, err = n.openAccessLog(&next); err != nil {
			return nil, nil, err
		}
	}
	defer func() {
		if err != nil && access != nil && access != n.access.Load() {
			access.Close()
		}
	}()
	// Nothing fails from here on: the configuration was checked before.
	if err := n.proxy.Store().Resize(next.StoreSize); err != nil {
		return nil, nil, fmt.Errorf("--store-size: %s", strings.TrimPrefix(err.Error(), "store: "))
	}
	if !slices.Equal(next.Join, old.Join) {
		if err := n.gossip.SetJoin(next.Join); err != nil {
			return nil, nil, fmt.Errorf("--join: %s", strings.TrimPrefix(err.Error(), "gossip: "))
		}
	}
	old.PeerTLS.Renew(next.PeerTLS)
	if n.https != nil {
		n.https.use(next.Certificates)
	}
	next.PeerTLS = old.PeerTLS // which has the renewed files
	next.Traces, next.TraceHeader, next.TraceTimeout = old.Traces, old.TraceHeader, old.TraceTimeout
	n.configure(next)
	n.proxy.Configure(n.settings(n.config()))
	n.proxy.Tune(tuning(n.config()))
	n.proxy.Store().Scrub(next.Scrub)
	if former := n.access.Swap(access); former != nil && former != access {
		if err := former.Close(); err != nil {
			n.log.Warn("the former access log could not be closed", "err", err)
		}
	}
	return files, kept, nil
}

// ReopenAccessLog opens the file at the path of the access log again. After an error, the log
// continues in the former file.
func (n *Node) ReopenAccessLog() error {
	if access := n.access.Load(); access != nil {
		return access.Reopen()
	}
	return nil
}
