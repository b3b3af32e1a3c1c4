package squid

import (
	"context"
	"io"
	"log/slog"
	"net"

	"github.com/summarycache/summarycache/gossip/memnet"
)

func dialer(host *memnet.Host) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) { return host.Dial(ctx, addr) }
}

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
