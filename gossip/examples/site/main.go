// Command site is a web site of several processes, which share one cache: what one of them has made, the others get
// from it.
//
//	SECRET='at least 16 bytes, better random' go run . -name a &
//	SECRET='at least 16 bytes, better random' go run . -name b -listen 127.0.0.1:8081 -gossip 127.0.0.1:7947 -join 127.0.0.1:7946 &
//	curl -H 'Host: site.example' 127.0.0.1:8080/news
//	curl -H 'Host: site.example' 127.0.0.1:8081/news    # made by a
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

func main() {
	name := flag.String("name", "a", "of this process in the cluster")
	listen := flag.String("listen", "127.0.0.1:8080", "for clients and for the other processes")
	port := flag.String("gossip", "127.0.0.1:7946", "for messages of the cluster, UDP and TCP")
	join := flag.String("join", "", "gossip addresses of others, with commas; the first process has none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	node, err := gossip.New(gossip.Config{
		Name: *name, Bind: *port, Join: strings.FieldsFunc(*join, func(c rune) bool { return c == ',' }),
		Secret: []byte(os.Getenv("SECRET")), Service: *listen, Objects: 10_000, Profile: digest.HTTP,
	})
	if err != nil {
		log.Fatal(err)
	}
	cache, err := httpcache.NewMember(httpcache.MemberConfig{Node: node, Open: memstore.Open(256 << 20)})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *listen, Handler: cache.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=60")
		fmt.Fprintf(w, "%s, made by %s\n", r.URL.Path, *name)
	}))}
	go func() {
		if err := node.Join(ctx); err != nil && !errors.Is(err, gossip.ErrUnreachable) {
			log.Fatal(err) // nobody there yet is no mistake
		}
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		server.Shutdown(end)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	node.Leave(context.Background())
	cache.Close()
}
