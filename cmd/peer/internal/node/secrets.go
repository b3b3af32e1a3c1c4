package node

import (
	"bytes"
	"errors"
	"slices"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/digest"
)

// errStep refuses a change of secrets that would cut this peer off from all others.
var errStep = errors.New("a step is left out: the secret in use must stay in the file as an accepted one; " +
	"change every peer's file to the lines old, new, then to new, old, and then to new")

// secrets returns the secrets accepted for commands between peers; the first one signs.
func (n *Node) secrets() [][]byte {
	if all := n.secret.Load(); all != nil {
		return *all
	}
	return nil
}

func (n *Node) useSecrets(c *config.Config) {
	if c.Secret != nil {
		all := append([][]byte{c.Secret}, c.AcceptSecrets...)
		n.secret.Store(&all)
	}
}

// secretsDiffer reports whether the secrets of a configuration differ from those in use, or why they cannot replace
// them.
func (n *Node) secretsDiffer(c *config.Config) (bool, error) {
	held, all := n.secrets(), append([][]byte{c.Secret}, c.AcceptSecrets...)
	if held == nil || slices.EqualFunc(held, all, bytes.Equal) {
		return false, nil
	}
	if !slices.ContainsFunc(all, func(s []byte) bool { return bytes.Equal(s, held[0]) }) {
		return false, errStep
	}
	return true, nil
}

// changeSecrets moves a running node from its secrets to those of the configuration, if they differ.
func (n *Node) changeSecrets(c *config.Config) error {
	if differ, err := n.secretsDiffer(c); err != nil || !differ {
		return err
	}
	if err := n.gossip.SetSecrets(c.Secret, c.AcceptSecrets...); err != nil {
		return err
	}
	n.useSecrets(c)
	if err := n.holdings.Reseed(digest.SeedFrom(c.Secret), n.proxy.Advertised()); err != nil {
		return errors.Join(errors.New("the secrets have changed, the keys of the digest have not"), err)
	}
	return nil
}
