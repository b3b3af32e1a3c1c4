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

	"github.com/summarycache/summarycache/cmd/peer/internal/sd"
)

var errReplaced = errors.New("another program continues")

// checkTime is how long a program may take to check the configuration before it continues.
const checkTime = 10 * time.Second

// replaceable reports whether the program file, which may be another by now, can continue: whether it runs, and accepts
// the configuration. If not, the log and the events say why.
func (r *reloader) replaceable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	program, err := os.Executable()
	if err == nil {
		args := slices.Clone(r.args)
		args[slices.Index(args, "run")] = "validate"
		check := exec.CommandContext(ctx, program, args...)
		var said bytes.Buffer
		check.Stderr = &said
		if err = check.Run(); err != nil {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
		}
	}
	if err != nil {
		r.log.Error("the program is not replaced", "err", err)
	}
	return err == nil
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
