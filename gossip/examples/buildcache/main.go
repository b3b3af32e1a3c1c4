package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
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
	Name, Dir, SecretFile   string
	Size                    int64 // MiB
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do: serve or go (see -h of each)")
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
		return serve(ctx, o, func(m *Machine) {
			fmt.Printf("builds ask at http://%s, siblings at %s, gossip at %s\n", m.Addr, m.Siblings, m.Node.Addr())
		})
	case "go":
		return (&Go{Server: "http://" + o.Listen, Dir: filepath.Join(o.Dir, "go")}).Serve(ctx, os.Stdin, os.Stdout)
	}
	return fmt.Errorf("unknown command %q: serve or go", args[0])
}

// readSecret reads the secret of the cluster.
func readSecret(file string) ([]byte, error) {
	if file == "" {
		return nil, errors.New("--secret-file is needed: entries are believed, so they are signed")
	}
	text, err := os.ReadFile(file)
	secret := bytes.TrimSpace(text)
	if err == nil && len(secret) < 16 {
		err = fmt.Errorf("--secret-file: %s has %d bytes, 16 at least are needed", file, len(secret))
	}
	return secret, err
}

// A Machine is a running cache.
type Machine struct {
	Addr, Siblings string // where builds and siblings ask
	Node           *gossip.Node
	cache          *httpcache.Member
}

const (
	perOutput = 16 << 10 // bytes on disk that an output and its entry take about
	patience  = time.Minute
)

// serve runs the cache of this machine until ctx ends, and calls ready once it answers. If it can reach no other, it
// goes on trying.
func serve(ctx context.Context, o Options, ready func(*Machine)) error {
	if net.ParseIP(o.Address) == nil {
		return fmt.Errorf("--address: %q is no IP address; give the one at which the other machines reach this one",
			o.Address)
	}
	if o.Size < 8 {
		return fmt.Errorf("--size: %d, want 8 MiB at least", o.Size)
	}
	secret, err := readSecret(o.SecretFile)
	if err != nil {
		return err
	}
	key, err := KeyOf(secret)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	builds, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer builds.Close()
	siblings, err := net.Listen("tcp", net.JoinHostPort(o.Address, strconv.Itoa(o.ServicePort)))
	if err != nil {
		return fmt.Errorf("--service-port: %w", err)
	}
	defer siblings.Close()
	cfg := gossip.Config{Name: o.Name, Bind: net.JoinHostPort(o.Address, strconv.Itoa(o.GossipPort)), Secret: secret, Service: siblings.Addr().String(),
		Objects: int(o.Size<<20) / perOutput, Profile: digest.HTTP, StateFile: filepath.Join(o.Dir, "state")}
	if o.Join != "" {
		cfg.Join = strings.Split(o.Join, ",")
	}
	node, err := gossip.New(cfg)
	if err != nil {
		return err
	}
	disk := diskstore.Options{Dir: filepath.Join(o.Dir, "store"), MaxBytes: o.Size << 20, MemoryBytes: 64 << 20}
	cache, err := httpcache.NewMember(httpcache.MemberConfig{Node: node, Open: disk.Open, Logger: slog.Default()})
	if err != nil {
		return cmp.Or(err, node.Close())
	}
	defer cache.Close()
	defer node.Close() // before the cache
	if err := node.Join(ctx); err != nil && !errors.Is(err, gossip.ErrUnreachable) {
		return err
	}
	for l, h := range map[net.Listener]http.Handler{builds: &Server{Cache: cache, Key: key, Most: o.Size << 20 / 4, Dir: o.Dir}, siblings: cache} {
		s := &http.Server{Handler: h, ReadHeaderTimeout: patience, IdleTimeout: patience}
		defer s.Close()
		go s.Serve(l)
	}
	ready(&Machine{builds.Addr().String(), cfg.Service, node, cache})
	<-ctx.Done()
	return nil
}
