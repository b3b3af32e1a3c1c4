package node

import (
	"context"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
)

// lastTraces is how long a peer that stops may take to send what it traced last.
const lastTraces = 5 * time.Second

// trace begins to trace requests, if the configuration says where to.
func (n *Node) trace() error {
	if n.cfg.Traces == nil {
		return nil
	}
	var err error
	n.tracing, err = tracing.New(context.Background(), tracing.Config{
		Endpoint: n.cfg.Traces.String(), Header: n.cfg.TraceHeader, Timeout: n.cfg.TraceTimeout,
		Name: n.cfg.Name, Version: n.version, Logger: n.log,
	})
	if err != nil {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return nil
}
