package proxy

import (
	"context"
	"net"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
)

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialOrigin connects to origins within the time for that, and gives up an origin
// that takes nothing of a request for too long.
func dialOrigin(c *Config) dialFunc {
	dial, wait, pause := c.Dial, c.ConnectTimeout, c.SendTimeout
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		to, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return conn.Patient(to, pause), nil
	}
}
