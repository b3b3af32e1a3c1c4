package node

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// TestReplace: a program that is being checked, and one that was refused, are told of until one is accepted. A check that
// does not end holds up nothing, and what it says at last counts no more once another has begun.
func TestReplace(t *testing.T) {
	n := assemble(Options{})
	degraded := func() string { return n.upgrades.Load().Error }
	if _, err := n.Replace(t.Context(), admin.ReplaceRequest{}); err == nil {
		t.Error("a node whose program cannot be replaced accepts it")
	}
	begun := make(chan bool)
	n.o.Accepts = func(ctx context.Context) (string, error) {
		begun <- true
		<-ctx.Done()
		return "", errors.New("never ended")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := n.Replace(ctx, admin.ReplaceRequest{})
		ended <- err
	}()
	<-begun
	if got := degraded(); !strings.Contains(got, "is being checked") {
		t.Errorf("during the check: %q", got)
	}
	n.o.Accepts = func(context.Context) (string, error) { return "", errors.New("two\nmistakes") }
	if _, err := n.Replace(t.Context(), admin.ReplaceRequest{}); err == nil {
		t.Error("a refused program is accepted")
	}
	if cancel(); (<-ended).Error() != "never ended" {
		t.Error("the first check ended otherwise")
	}
	if got := degraded(); !strings.Contains(got, "two\nmistakes") {
		t.Errorf("after the refusal: %q", got)
	}
	n.o.Accepts = func(context.Context) (string, error) { return "/bin/peer", nil }
	for range 2 {
		if r, err := n.Replace(t.Context(), admin.ReplaceRequest{}); err != nil || r.Program != "/bin/peer" {
			t.Errorf("Replace = %+v, %v", r, err)
		}
	}
	if got := degraded(); got != "" || len(n.Replaced()) != 1 {
		t.Errorf("after an accepted one: %q, and %d are to continue", got, len(n.Replaced()))
	}
}
