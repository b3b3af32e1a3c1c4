package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "buildcache:", err)
		os.Exit(1)
	}
}

// Options are what a command is told.
type Options struct {
	Listen                  string // address at which the builds of this machine ask
	Address                 string // of this machine, for the others
	GossipPort, ServicePort int
	Join                    string // gossip addresses of others, with commas
	Name, Dir               string
	SecretFile              string
	KeyFile, PublicKey      string // see keys
	Size                    int64  // MiB
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do: serve, go or key (see -h of each)")
	}
	host, _ := os.Hostname()
	o, flags := Options{Name: host}, flag.NewFlagSet("buildcache "+args[0], flag.ContinueOnError)
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:8085", "address at which the builds of this machine ask")
	flags.StringVar(&o.Address, "address", "", "IP address at which the other machines reach this one")
	flags.IntVar(&o.GossipPort, "gossip-port", 7946, "port of the cluster's gossip, UDP and TCP")
	flags.IntVar(&o.ServicePort, "service-port", 8086, "port at which the other machines ask")
	flags.StringVar(&o.Join, "join", "", "gossip addresses of other machines, with commas")
	flags.StringVar(&o.Name, "name", o.Name, "name of this machine in the cluster")
	flags.StringVar(&o.SecretFile, "secret-file", "", "file with the secret of the cluster, 16 bytes or more")
	flags.StringVar(&o.KeyFile, "key-file", "", "file with a secret to sign entries by, 16 bytes or more, instead of the cluster's")
	flags.StringVar(&o.PublicKey, "public-key", "", "believe entries that are signed by this key, and sign none: as \"buildcache key\" prints it")
	flags.StringVar(&o.Dir, "dir", "", "directory of the outputs (default: buildcache in the user's cache directory)")
	flags.Int64Var(&o.Size, "size", 10<<10, "MiB on disk; an output may have a quarter of it")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected %q", flags.Arg(0))
	}
	if o.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("%w: give --dir", err)
		}
		o.Dir = filepath.Join(cache, "buildcache")
	}
	switch args[0] {
	case "serve":
		m, err := Start(ctx, o)
		if err != nil {
			return err
		}
		fmt.Printf("builds ask at http://%s, siblings at %s, gossip at %s\n", m.Addr, m.Siblings, m.Node.Addr())
		<-ctx.Done()
		return m.Close()
	case "go":
		return (&Go{Server: "http://" + o.Listen, Dir: filepath.Join(o.Dir, "go")}).Serve(ctx, os.Stdin, os.Stdout)
	case "key":
		keys, err := o.keys()
		if err == nil {
			fmt.Println(base64.StdEncoding.EncodeToString(keys.Public))
		}
		return err
	}
	return fmt.Errorf("unknown command %q: serve, go or key", args[0])
}

func readSecret(flag, file string) ([]byte, error) {
	if file == "" {
		return nil, fmt.Errorf("--%s is needed: entries are believed, so they are signed", flag)
	}
	text, err := os.ReadFile(file)
	secret := bytes.TrimSpace(text)
	if err == nil && len(secret) < 16 {
		err = fmt.Errorf("--%s: %s has %d bytes, 16 at least are needed", flag, file, len(secret))
	}
	return secret, err
}

// keys returns the keys of entries: those of the key file, or of the cluster's secret, or only the one that checks.
func (o *Options) keys() (Keys, error) {
	flag, file := "secret-file", o.SecretFile
	switch {
	case o.PublicKey != "" && o.KeyFile != "":
		return Keys{}, errors.New("give --key-file or --public-key, not both")
	case o.PublicKey != "":
		public, err := base64.StdEncoding.DecodeString(o.PublicKey)
		if err != nil || len(public) != ed25519.PublicKeySize {
			return Keys{}, errors.New("--public-key: want 44 characters of base64, as \"buildcache key\" prints them")
		}
		return Keys{Public: public}, nil
	case o.KeyFile != "":
		flag, file = "key-file", o.KeyFile
	}
	secret, err := readSecret(flag, file)
	if err != nil {
		return Keys{}, err
	}
	return KeysOf(secret)
}

// A Machine is a running cache.
type Machine struct {
	Addr, Siblings string // where builds and siblings ask
	Node           *gossip.Node
	cache          *httpcache.Member
	closers        []io.Closer // listeners, and the servers at them
}

const (
	perOutput = 16 << 10 // bytes on disk that an output and its entry take about
	patience  = time.Minute
)

// Start starts the cache of this machine. If it can reach no other, it goes on trying.
func Start(ctx context.Context, o Options) (m *Machine, err error) {
	if net.ParseIP(o.Address) == nil {
		return nil, fmt.Errorf("--address: %q is no IP address; give the one at which the other machines reach this one", o.Address)
	}
	if o.Size < 8 {
		return nil, fmt.Errorf("--size: %d, want 8 MiB at least", o.Size)
	}
	keys, err := o.keys()
	if err != nil {
		return nil, err
	}
	secret, err := readSecret("secret-file", o.SecretFile)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	m = &Machine{}
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	builds, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return m, fmt.Errorf("--listen: %w", err)
	}
	m.closers = append(m.closers, builds)
	siblings, err := net.Listen("tcp", net.JoinHostPort(o.Address, strconv.Itoa(o.ServicePort)))
	if err != nil {
		return m, fmt.Errorf("--service-port: %w", err)
	}
	m.closers = append(m.closers, siblings)
	cfg := gossip.Config{Name: o.Name, Bind: net.JoinHostPort(o.Address, strconv.Itoa(o.GossipPort)), Secret: secret, Service: siblings.Addr().String(),
		Objects: int(o.Size<<20) / perOutput, Profile: digest.HTTP, StateFile: filepath.Join(o.Dir, "state")}
	if o.Join != "" {
		cfg.Join = strings.Split(o.Join, ",")
	}
	if m.Node, err = gossip.New(cfg); err != nil {
		return m, err
	}
	disk := diskstore.Options{Dir: filepath.Join(o.Dir, "store"), MaxBytes: o.Size << 20, MemoryBytes: 64 << 20, Scrub: 7 * 24 * time.Hour}
	if m.cache, err = httpcache.NewMember(httpcache.MemberConfig{Node: m.Node, Open: disk.Open, Logger: slog.Default()}); err != nil {
		return m, err
	}
	if err := m.Node.Join(ctx); err != nil && !errors.Is(err, gossip.ErrUnreachable) {
		return m, err
	}
	m.Addr, m.Siblings = builds.Addr().String(), cfg.Service
	for l, h := range map[net.Listener]http.Handler{builds: &Server{Cache: m.cache, Keys: keys, Most: o.Size << 20 / 4, Dir: o.Dir}, siblings: m.cache} {
		s := &http.Server{Handler: h, ReadHeaderTimeout: patience, IdleTimeout: patience}
		m.closers = append(m.closers, s)
		go s.Serve(l)
	}
	return m, nil
}

// Close ends the cache.
func (m *Machine) Close() (err error) {
	for _, c := range m.closers {
		c.Close()
	}
	if m.Node != nil {
		err = m.Node.Close()
	}
	if m.cache != nil {
		err = cmp.Or(err, m.cache.Close())
	}
	return err
}
