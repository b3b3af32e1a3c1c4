package httpcache

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// says returns what a function panics with; "" = it does not.
func says(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

// TestZeroValues: each method of a Member that nothing has made says how to make one.
func TestZeroValues(t *testing.T) {
	request, _ := http.NewRequest(http.MethodGet, "http://o.test/x", nil)
	for _, value := range []any{(*Member)(nil), new(Member)} {
		v := reflect.ValueOf(value)
		for i := range v.NumMethod() {
			method := v.Method(i)
			var args []reflect.Value
			for a := range method.Type().NumIn() {
				switch of := method.Type().In(a); of {
				case reflect.TypeFor[context.Context]():
					args = append(args, reflect.ValueOf(t.Context()))
				case reflect.TypeFor[*http.Request]():
					args = append(args, reflect.ValueOf(request))
				default:
					args = append(args, reflect.Zero(of))
				}
			}
			call := method.Call
			if method.Type().IsVariadic() {
				call = method.CallSlice
			}
			if got := says(func() { call(args) }); !strings.HasSuffix(got, "make one with NewMember") {
				t.Errorf("%s of a %T, nil %v: %q", v.Type().Method(i).Name, value, v.IsNil(), got)
			}
		}
	}
}

// TestNilArguments: a nil that means nothing is an error, or a panic that says what to pass.
func TestNilArguments(t *testing.T) {
	if _, err := NewMember(MemberConfig{}); err == nil || !strings.Contains(err.Error(), "needs") {
		t.Errorf("NewMember with nothing: %v", err)
	}
	opaque, err := gossip.New(gossip.Config{Name: "o", Bind: "10.0.0.1:7946", Objects: 100, Advanced: gossip.Advanced{Network: memnet.New(1).Host("10.0.0.1")},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer opaque.Close()
	if _, err := NewMember(MemberConfig{Node: opaque, Open: memstore.Open(1 << 20)}); err == nil || !strings.Contains(err.Error(), "Profile: digest.HTTP") {
		t.Errorf("NewMember with a node whose identities are opaque: %v", err)
	}
	m := newTestMember(t, "m", nil, nil)
	for name, call := range map[string]func() error{
		"Get":   func() error { _, err := m.Get(t.Context(), "x", nil); return err },
		"Open":  func() error { _, err := m.Open(t.Context(), "x", nil); return err },
		"Put":   func() error { return m.Put(t.Context(), "x", io.Reader(nil)) },
		"Wrap":  func() error { m.Wrap(nil); return nil },
		"Serve": func() error { return m.Serve(nil, nil, nil) },
	} {
		var err error
		if got := says(func() { err = call() }); got == "" && (err == nil || !strings.Contains(err.Error(), "needs")) ||
			got != "" && !strings.Contains(got, "needs") {
			t.Errorf("%s of nil: %v, %q", name, err, got)
		}
	}
}
