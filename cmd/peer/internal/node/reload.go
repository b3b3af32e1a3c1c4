package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

const (
	knownByIt   = "the other peers know this one by it"
	openedByIt  = "what it names was opened at the start"
	dividedByIt = "memory and descriptors were divided by it at the start"
)

// fixed are the settings that a running node keeps as they were at its start, and why.
var fixed = map[string]string{
	"name": knownByIt, "cluster": knownByIt, "zone": knownByIt, "gossip": knownByIt, "advertise": knownByIt,
	"keep-digests": knownByIt,
	"listen":       openedByIt, "admin": openedByIt, "https": openedByIt, "store": openedByIt,
	"memory-limit": dividedByIt, "memory-size": dividedByIt, "max-members": dividedByIt, "max-connections": dividedByIt,
	"max-header-size": dividedByIt, "log-format": "the log is written in it from the start on",
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
		MaxHeader: int(c.MaxHeaderSize), PassFields: c.PassFields, ZoneCost: c.ZoneCost,
		ConnectTimeout: c.ConnectTimeout, FirstByteTimeout: c.FirstByteTimeout, ConnectionAge: c.ConnectionAge,
	}
	if !c.Reverse() {
		s.AllowClient = func(r *http.Request) bool { return n.proxyAccess().Client(r) }
		s.AllowConnect = func(_, port string) bool { return n.proxyAccess().Port(port) }
	}
	return s
}

// tuning returns what the cache can change while it runs.
func tuning(c *config.Config) engine.Tuning {
	return engine.Tuning{SiblingMaxAge: c.SiblingMaxAge, Compare: c.SiblingCompare,
		BetweenBytesTimeout: cmp.Or(c.BetweenBytesTimeout, time.Minute), SendTimeout: c.SendTimeout}
}

// Reload reads the configuration again and applies what can change.
func (n *Node) Reload(r admin.ReloadRequest) (report admin.ReloadReport, err error) {
	if n.o.Reread == nil {
		return report, errors.New("this peer has no configuration that can be read again")
	}
	n.reload.Lock()
	defer n.reload.Unlock()
	report, err = n.o.Reread(r.DryRun)
	if !r.DryRun {
		last := admin.Attempt{At: time.Now(), Good: n.reloads.Load().Good}
		if err != nil {
			last.Error = err.Error()
		} else {
			last.Good = last.At
		}
		n.reloads.Store(&last)
	}
	return report, err
}

// Replace has the program file continue in this process, if it is accepted: [Node.Replaced] then says so. While it is
// checked, and after a refusal, the peer is degraded, until a program is accepted.
func (n *Node) Replace(ctx context.Context, _ admin.ReplaceRequest) (admin.ReplaceReport, error) {
	if n.o.Accepts == nil {
		return admin.ReplaceReport{}, errors.New("this peer's program cannot be replaced while it runs")
	}
	try := admin.Attempt{At: time.Now(), Good: n.started, Error: "the new one is being checked"}
	n.upgrades.Store(&try)
	program, err := n.o.Accepts(ctx)
	last := try
	if last.Error = ""; err != nil {
		last.Error = err.Error()
		n.log.Error("the program is not replaced", "err", err)
	}
	if !n.upgrades.CompareAndSwap(&try, &last) || err != nil { // or another attempt has begun
		return admin.ReplaceReport{}, err
	}
	select {
	case n.replaced <- struct{}{}:
	default: // it is about to be
	}
	return admin.ReplaceReport{Program: program}, nil
}

// Replaced receives when the program file is to continue in this process: whoever started the node then calls
// [Node.HandOver].
func (n *Node) Replaced() <-chan struct{} { return n.replaced }

// Apply applies a configuration to a running node. After an error nothing has changed, and
// nothing changes in a dry run. It uses the secrets and certificates that were read with the configuration. where says
// where each setting is; one that is not there is left at its default, and kept if it cannot change. Apply returns the
// settings whose files have changed.
func (n *Node) Apply(next config.Config, where map[string]string, dryRun bool) (files []string, err error) {
	old := n.config()
	if err := refuse(&next, old, where); err != nil {
		return nil, err
	}
	changed, err := n.secretsDiffer(&next)
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %w", err)
	}
	if changed {
		files = append(files, "secret-file")
	}
	if old.PeerTLS.Differs(next.PeerTLS) {
		files = append(files, "tls-cert")
	}
	if n.https != nil && n.https.differs(next.Certificates) {
		files = append(files, "https-cert")
	}
	if next.AdminToken != old.AdminToken {
		files = append(files, "admin-token-file")
	}
	replan := next.Objects != old.Objects || next.FalsePositives != old.FalsePositives
	if _, err := digest.GeometryFor(next.Objects, next.FalsePositives); replan && err != nil {
		return nil, fmt.Errorf("--objects: %w", err)
	}
	if dryRun {
		return files, nil
	}
	access := n.access.Load()
	if next.AccessLog != old.AccessLog || next.AccessLogFormat != old.AccessLogFormat {
		if access, err = n.openAccessLog(&next); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil && access != nil && access != n.access.Load() {
			access.Close()
		}
	}()
	// Nothing fails from here on: the configuration was checked before.
	if err := n.proxy.Store().Resize(next.StoreSize); err != nil {
		return nil, fmt.Errorf("--store-size: %s", strings.TrimPrefix(err.Error(), "store: "))
	}
	if err := n.applyToGossip(&next, replan); err != nil {
		return nil, err
	}
	if fmt.Sprint(next.Traces, next.TraceHeader, next.TraceTimeout) != fmt.Sprint(old.Traces, old.TraceHeader, old.TraceTimeout) {
		if err := n.trace(&next); err != nil {
			return nil, err
		}
	}
	old.PeerTLS.Renew(next.PeerTLS)
	if n.https != nil {
		n.https.use(next.Certificates)
	}
	next.PeerTLS = old.PeerTLS // which has the renewed files
	n.configure(next)
	n.proxy.Configure(n.settings(n.config()))
	n.gossip.Inside().SetSettings(n.settings(n.config()).Sums())
	n.proxy.Tune(tuning(n.config()))
	n.squids.Use(next.SquidPeers)
	n.gates.clients.SetPatience(n.config().SendTimeout)
	n.gates.admin.SetPatience(n.config().SendTimeout)
	if former := n.access.Swap(access); former != nil && former != access {
		if err := former.Close(); err != nil {
			n.log.Warn("the former access log could not be closed", "err", err)
		}
	}
	return files, nil
}

// refuse returns an error for each setting of next that cannot change while the node runs and differs. Those left at
// their defaults, which may follow from the machine, are kept.
func refuse(next, old *config.Config, where map[string]string) error {
	var errs []error
	refused := func(name, reason string) {
		errs = append(errs, fmt.Errorf("%s cannot change without a restart: %s",
			cmp.Or(where[name], "--"+name), reason))
	}
	for _, name := range next.Keep(old, slices.Sorted(maps.Keys(fixed))) {
		if where[name] != "" {
			refused(name, fixed[name])
		}
	}
	if (old.PeerTLS == nil) != (next.PeerTLS == nil) {
		refused("tls-cert", "the peers speak TLS with each other, or none, from the start on")
	}
	if (old.Secret == nil) != (next.Secret == nil) {
		refused("secret-file", "gossip is encrypted, or is not, from the start on")
	}
	if (len(old.ProxyProtocol) == 0) != (len(next.ProxyProtocol) == 0) {
		refused("proxy-protocol", "the listeners read its headers, or none, from the start on")
	}
	return errors.Join(errs...)
}

// applyToGossip applies what gossip and the digest have of a configuration.
func (n *Node) applyToGossip(next *config.Config, replan bool) error {
	if !slices.Equal(next.Join, n.config().Join) {
		if err := n.gossip.Inside().SetJoin(next.Join); err != nil {
			return fmt.Errorf("--join: %s", strings.TrimPrefix(err.Error(), "gossip: "))
		}
	}
	if replan {
		if err := n.holdings.Keys().Inside().Replan(next.Objects, next.FalsePositives); err != nil {
			return fmt.Errorf("--objects: %w", err)
		}
	}
	if next.Publish != n.config().Publish {
		if err := n.gossip.Inside().SetPublishing(exchange.Publishing{Interval: next.Publish}); err != nil {
			return fmt.Errorf("--publish: %s", strings.TrimPrefix(err.Error(), "gossip: "))
		}
	}
	if err := n.changeSecrets(next); err != nil {
		return fmt.Errorf("--secret-file: %s", strings.TrimPrefix(err.Error(), "gossip: "))
	}
	return nil
}

// ReopenAccessLog opens the file at the path of the access log again. After an error, the log
// continues in the former file.
func (n *Node) ReopenAccessLog() error {
	if access := n.access.Load(); access != nil {
		return access.Reopen()
	}
	return nil
}
