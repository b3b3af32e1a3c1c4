package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/sd"
)

type replaceCommand struct {
	Wait     time.Duration `name:"wait" default:"5m" type:"time"`
	operator `embed:""`
}

func (c *replaceCommand) Help() string {
	return `Has the program file of a running peer, which an upgrade may have changed, check the configuration and continue in the peer's process, as SIGUSR2 does: with its sockets, store and name, and without refusing a client. Waits until the new program is ready. The exit code is 1 if it is refused, which is then shown, or if it is not ready in time.`
}

func (c *replaceCommand) Run(e *environment) error {
	token, err := c.token()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, c.Wait)
	defer cancel()
	before, after, err := admin.Client(c.Admin).Replace(ctx, token)
	if err != nil {
		return err
	}
	report := replaced{after.Name, before.Version, after.Version, after.Started}
	return show(e, c.JSON, report, func(r replaced) string {
		return fmt.Sprintf("%s runs %s since %s; before: %s\n", r.Peer, r.Version,
			r.Started.Local().Format(time.DateTime), r.Was)
	})
}

// replaced is what replace prints as JSON.
type replaced struct {
	Peer    string    `json:"peer"`
	Was     string    `json:"was"` // the version before
	Version string    `json:"version"`
	Started time.Time `json:"started"`
}

var errReplaced = errors.New("another program continues")

// accepts reports whether the program file, which may be another by now, can continue: whether it runs and accepts the
// configuration. That may take as long as ctx allows, since it needs nothing but a processor. A further call ends it.
func (r *reloader) accepts(ctx context.Context) (program string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if former := r.checking.Swap(&cancel); former != nil {
		(*former)(errors.New("another attempt has begun"))
	}
	if program, err = os.Executable(); err != nil {
		return "", err
	}
	args := slices.Clone(r.args)
	args[slices.Index(args, "run")] = "validate"
	check := exec.CommandContext(ctx, program, args...)
	var said bytes.Buffer
	check.Stderr = &said
	check.WaitDelay = time.Second // for a child of it that has its standard error
	switch err = check.Run(); {
	case err == nil:
		return program, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("the check of %s did not end: %w", program, context.Cause(ctx))
	case said.Len() > 0:
		return "", errors.New(strings.TrimSpace(strings.TrimPrefix(said.String(), "peer: ")))
	}
	return "", fmt.Errorf("%s does not run: %w", program, err)
}

// handOver stops the node, and has the program file continue in this process. It returns only if that fails.
func (r *reloader) handOver(environ []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var kept []sd.Socket
	for name, l := range r.node.Sockets() {
		s, err := sd.Keep(name, r.addresses[name], l)
		if err != nil {
			return err
		}
		kept = append(kept, s)
	}
	r.log.Info("another program continues with the sockets", "program", program)
	drain, cancel := context.WithTimeout(context.Background(), r.drain)
	defer cancel()
	if err := within(r.drain+stopGrace, func() error { return r.node.HandOver(drain) }); err != nil {
		r.log.Error("not stopped completely", "err", err)
	}
	return sd.Become(program, r.args, environ, kept)
}
