package gossip

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/summarycache/summarycache/digest"
)

// TestZeroNode: each method of a Node that New has not made says so.
func TestZeroNode(t *testing.T) {
	for _, n := range []*Node{nil, new(Node)} {
		v := reflect.ValueOf(n)
		for i := range v.NumMethod() {
			method := v.Type().Method(i)
			var args []reflect.Value
			for a := range v.Method(i).Type().NumIn() {
				args = append(args, reflect.Zero(v.Method(i).Type().In(a)))
			}
			if v.Method(i).Type().IsVariadic() {
				args = args[:len(args)-1]
			}
			says := func() (says string) {
				defer func() { says = fmt.Sprint(recover()) }()
				v.Method(i).Call(args)
				return ""
			}()
			if !strings.Contains(says, "make one with New") {
				t.Errorf("%s of a zero Node, %v: %q", method.Name, n == nil, says)
			}
		}
	}
}

// TestNilArguments: each nil that means nothing is an error, or a panic that says what to pass.
func TestNilArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		n := c.start(c.config("p1", "10.0.0.1"))
		var noContext context.Context
		var none *Holdings
		for name, call := range map[string]func() error{
			"Join":       func() error { return n.Join(noContext) },
			"Leave":      func() error { return n.Leave(noContext) },
			"Invalidate": func() error { return n.Invalidate(noContext) },
			"OnInvalidation": func() error {
				n.OnInvalidation(nil)
				return nil
			},
			"Add to nil Holdings":       func() error { none.Add("x"); return nil },
			"Add to zero Holdings":      func() error { new(Holdings).Add("x"); return nil },
			"Retain in nil Holdings":    func() error { none.Retain("x"); return nil },
			"Release from nil Holdings": func() error { none.Release("x"); return nil },
			"Remove from nil Holdings":  func() error { none.Remove("x"); return nil },
			"Has of nil Holdings":       func() error { none.Has("x"); return nil },
			"Part of nil Holdings":      func() error { none.Part(); return nil },
			"Replace in nil Holdings":   func() error { none.Replace(func(func(string) bool) {}); return nil },
			"Reseed of nil Holdings":    func() error { return none.Reseed(1, func(func(string) bool) {}) },
			"Reseed":                    func() error { return n.Holdings().Reseed(1, nil) },
			"Replace": func() error {
				n.Holdings().Replace(nil)
				return nil
			},
			"a nil set": func() error {
				cfg := c.config("p2", "10.0.0.2")
				cfg.Holdings = NewHoldings(nil)
				_, err := New(cfg)
				return err
			},
			"zero Holdings": func() error {
				cfg := c.config("p2", "10.0.0.2")
				cfg.Holdings = new(Holdings)
				_, err := New(cfg)
				return err
			},
		} {
			err := func() (err error) {
				defer func() {
					if r := recover(); r != nil {
						err = fmt.Errorf("%v", r)
					}
				}()
				return call()
			}()
			if err == nil || !strings.HasPrefix(err.Error(), "gossip: ") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := n.CandidatesByKey(nil, digest.Key(0)); len(got) != 0 || errors.Is(n.alone(), ErrClosed) {
			t.Errorf("after all that: %v", got)
		}
		if none.Keys() != nil {
			t.Error("nil Holdings have keys")
		}
	})
}
