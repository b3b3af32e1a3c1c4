package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
)

// A Trial says whether something that a peer needs is available.
type Trial struct {
	What  string // the setting
	Value string // or one of its values
	Err   error  // nil = it is available
	Later bool   // it may become available later: another peer
}

// Try opens the ports, the store and the files as [Start] does, and closes them again. After that
// it connects once to the origins, Squids and peers that the configuration names; before, it could
// take its own ports for a peer. It joins no cluster and answers no request, and removes the files that it made. It
// takes as long as opening the store, and up to tryWait more.
func Try(ctx context.Context, o Options) []Trial {
	made := before(&o.Config)
	n := assemble(o)
	err := n.acquire()
	err = errors.Join(err, n.release())
	if n.proxy != nil { // nobody else has the store
		made.remove()
	}
	return append(n.tried(err), n.outside(ctx)...)
}

// absent are files and directories that do not exist.
type absent struct {
	paths []string
	store string
	had   []os.DirEntry // in the store's directory
}

// before returns what a peer may make that is not there.
func before(c *config.Config) (a absent) {
	a.store = c.Store
	a.had, _ = os.ReadDir(c.Store)
	for _, file := range []string{c.AccessLog, c.Store} {
		for at := file; at != "" && at != "-"; at = filepath.Dir(at) { // until one is there: the root is
			if _, err := os.Lstat(at); err == nil {
				break
			}
			a.paths = append(a.paths, at)
		}
	}
	return a
}

// remove removes what was made since. A directory that holds something of others stays.
func (a *absent) remove() {
	now, _ := os.ReadDir(a.store)
	for _, e := range now {
		if !slices.ContainsFunc(a.had, func(old os.DirEntry) bool { return old.Name() == e.Name() }) {
			os.RemoveAll(filepath.Join(a.store, e.Name()))
		}
	}
	for _, path := range a.paths {
		os.Remove(path)
	}
}

// tryWait bounds the time for all connections together.
const tryWait = 5 * time.Second

// tried assigns the errors of acquire to settings.
func (n *Node) tried(err error) []Trial {
	had := map[string]bool{"listen": n.traffic != nil, "admin": n.admin != nil, "gossip": n.gossip != nil,
		"store": n.proxy != nil, "https": n.https != nil}
	own := []Trial{{What: "listen", Value: n.config().Listen}, {What: "admin", Value: n.config().Admin},
		{What: "gossip", Value: n.config().Gossip}, {What: "store", Value: n.config().Store}}
	if n.config().HTTPSListen != "" {
		own = append(own, Trial{What: "https", Value: n.config().HTTPSListen})
	}
	for i := range own {
		if !had[own[i].What] {
			own[i].Err = errors.New("not tried")
		}
	}
	if err == nil {
		return own
	}
	for line := range strings.SplitSeq(err.Error(), "\n") { // as errors.Join has them
		what, text, _ := strings.Cut(strings.TrimPrefix(line, "--"), " ")
		what = strings.TrimSuffix(what, ":")
		i := slices.IndexFunc(own, func(t Trial) bool { return t.What == what })
		if i < 0 { // another setting
			own = append(own, Trial{What: what})
			i = len(own) - 1
		}
		own[i].Err = errors.New(text)
	}
	return own
}

// outside connects to the addresses in the configuration.
func (n *Node) outside(ctx context.Context) []Trial {
	ctx, cancel := context.WithTimeout(ctx, tryWait)
	defer cancel()
	var all []Trial
	var connect []func() error
	add := func(what, value string, later bool, f func() error) {
		all, connect = append(all, Trial{What: what, Value: value, Later: later}), append(connect, f)
	}
	sites := n.config().Sites
	if n.config().Origin != nil {
		sites = []proxy.Site{{Origins: []*url.URL{n.config().Origin}}}
	}
	for _, s := range sites {
		for _, u := range s.Origins {
			add("origin", u.String(), false, func() error { return tryOrigin(ctx, u, s.TLS) })
		}
	}
	for _, addr := range n.config().SquidPeers {
		add("squid-peer", addr, false, func() error { return tryAddr(ctx, addr) })
	}
	for _, entry := range n.config().Join {
		add("join", entry, true, func() error { return tryJoin(ctx, entry) })
	}
	var wg sync.WaitGroup
	for i, f := range connect {
		wg.Go(func() { all[i].Err = f() })
	}
	wg.Wait()
	return all
}

func tryAddr(ctx context.Context, addr string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// tryOrigin connects, but sends no request, since the origin might act on it.
func tryOrigin(ctx context.Context, u *url.URL, conf *tls.Config) error {
	port := map[string]string{"http": "80", "h2c": "80", "https": "443"}[u.Scheme]
	addr := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	if u.Scheme != "https" {
		return tryAddr(ctx, addr)
	}
	c, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// tryJoin connects to one address of an entry. One is enough, since not all peers behind a name
// need to be up.
func tryJoin(ctx context.Context, entry string) error {
	name, ok := strings.CutPrefix(entry, "srv:")
	if !ok {
		return tryAddr(ctx, entry)
	}
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
	if err == nil && len(records) == 0 {
		err = errors.New("no SRV records")
	}
	for _, r := range records {
		if err = tryAddr(ctx, net.JoinHostPort(r.Target, strconv.Itoa(int(r.Port)))); err == nil {
			return nil
		}
	}
	return err
}
