package engine

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// TestZeroValues: each method of a Cache that nothing has made says how to make one.
func TestZeroValues(t *testing.T) {
	request, _ := http.NewRequest(http.MethodGet, "http://o.test/x", nil)
	says := func(f func()) (text string) {
		defer func() { text = fmt.Sprint(recover()) }()
		f()
		return text
	}
	for _, c := range []*Cache{nil, new(Cache)} {
		v := reflect.ValueOf(c)
		for i := range v.NumMethod() {
			method, args := v.Method(i), []reflect.Value(nil)
			for a := range method.Type().NumIn() {
				of := method.Type().In(a)
				if of == reflect.TypeFor[*http.Request]() {
					args = append(args, reflect.ValueOf(request))
				} else {
					args = append(args, reflect.Zero(of))
				}
			}
			if got := says(func() { method.Call(args) }); !strings.HasSuffix(got, "make one with New") {
				t.Errorf("%s, nil %v: %q", v.Type().Method(i).Name, c == nil, got)
			}
		}
	}
}

// TestNewRefuses: a Cache needs an origin and a store.
func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"nothing":   {},
		"no origin": {Open: memstore.Open(1 << 20)},
		"no store":  {Transport: http.DefaultTransport},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "needs") {
			t.Errorf("New with %s: %v", name, err)
		}
	}
}
