package node

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/summarycache/summarycache/gossip"
)

const firstJoin = 5 * time.Second // limit of the first attempt

// join tries once to join the cluster; gossip continues to try by itself. It returns an error only if a peer refuses
// this one for good, or if ctx ends.
func (n *Node) join(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, firstJoin)
	defer cancel()
	err := n.gossip.Join(limited)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case refused(err):
		return explain(err, n.config().Name)
	}
	return nil // gossip logs the error and tries again
}

// refused reports whether a peer answered and refused this one.
func refused(err error) bool {
	for _, final := range []error{gossip.ErrNameTaken, gossip.ErrCluster, gossip.ErrSecret, gossip.ErrVersion, gossip.ErrCanary} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// explain adds to errors of joining the settings that cause them.
func explain(err error, name string) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var each []error
		for _, e := range many.Unwrap() {
			each = append(each, explain(e, name))
		}
		return errors.Join(each...)
	}
	var join *gossip.JoinError
	if !errors.As(err, &join) {
		return err
	}
	switch {
	case errors.Is(err, gossip.ErrNameTaken):
		return fmt.Errorf("--name %q is taken: --join %s has another live peer of this name", name, join.Seed)
	case errors.Is(err, gossip.ErrCluster):
		return fmt.Errorf("--join %s is not a peer of this cluster (--cluster): %w", join.Seed, join.Err)
	case errors.Is(err, gossip.ErrSecret):
		return fmt.Errorf("--join %s refuses this peer: the cluster secrets differ (--secret-file)", join.Seed)
	case errors.Is(err, gossip.ErrMembers):
		return fmt.Errorf("--join %s refuses this peer: there are as many as its --max-members allows", join.Seed)
	}
	return fmt.Errorf("--join %s: %w", join.Seed, join.Err)
}

// inUse adds to an error of listening the setting that causes it.
func inUse(setting, addr string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s %s is in use by another process", setting, addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s %s is not an address of this machine", setting, addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s %s needs more rights than this process has", setting, addr)
	}
	return fmt.Errorf("%s %s: %w", setting, addr, err)
}
