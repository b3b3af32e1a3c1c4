package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/summarycache/summarycache/gossip"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "which:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	host, _ := os.Hostname()
	flags := flag.NewFlagSet("which", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8087",
		"address that answers /which and takes /holds: whoever reaches it is believed")
	cache := flags.String("cache", "", "host:port of the cache beside this, which siblings are told")
	address := flags.String("address", "", "IP address at which the others reach this")
	port := flags.String("gossip-port", "7946", "port of gossip, UDP and TCP")
	join := flags.String("join", "", "gossip addresses of others, with commas")
	name := flags.String("name", host, "name in the cluster")
	secretFile := flags.String("secret-file", "", "file with the secret of the cluster, 16 bytes or more")
	objects := flags.Int("objects", 100_000, "objects that the cache holds, about")
	varnish := flags.String("varnish", "-", "follow the log of the varnishd of this name; \"\" = the default one")
	nginx := flags.String("nginx", "", "follow the files of this proxy_cache_path")
	if err := flags.Parse(args); err != nil {
		return err
	}
	_, _, err := net.SplitHostPort(*cache)
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected %q", flags.Arg(0))
	case err != nil:
		return fmt.Errorf("--cache: %w", err)
	case net.ParseIP(*address) == nil:
		return fmt.Errorf("--address: %q is no IP address", *address)
	case *varnish != "-" && *nginx != "":
		return errors.New("give --varnish or --nginx, not both")
	case *secretFile == "":
		return errors.New("--secret-file is needed: who joins says where objects are")
	}
	secret, err := os.ReadFile(*secretFile)
	if err != nil {
		return err
	}
	cfg := gossip.Config{Name: *name, Bind: net.JoinHostPort(*address, *port), Secret: bytes.TrimSpace(secret), Service: *cache, Objects: *objects}
	if *join != "" {
		cfg.Join = strings.Split(*join, ",")
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	defer l.Close()
	node, err := gossip.New(cfg)
	if err != nil {
		return err
	}
	defer node.Close()
	if err := node.Join(ctx); err != nil && !errors.Is(err, gossip.ErrUnreachable) {
		return err
	}
	s := &Server{Node: node, Identity: func(key string) string { return key }}
	ended := make(chan error, 2)
	switch {
	case *nginx != "":
		s.Identity = nginxIdentity
		go func() { ended <- (&Nginx{Holdings: node.Holdings()}).follow(ctx, *nginx) }()
	case *varnish != "-":
		go func() { ended <- (&Varnish{Holdings: node.Holdings()}).follow(ctx, *varnish) }()
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	go func() { ended <- server.Serve(l) }()
	fmt.Printf("which: http://%s/which?url=..., gossip at %s\n", l.Addr(), node.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
