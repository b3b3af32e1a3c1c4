package digest

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// TestZeroValues: each method of a type that nothing has made works, or panics with what to use.
func TestZeroValues(t *testing.T) {
	real := emptyFilter(geometries[2], 1)
	for _, value := range []any{
		(*Filter)(nil), new(Filter), (*CountingFilter)(nil), new(CountingFilter), (*Set)(nil), new(Set), (*History)(nil), new(History),
		(*Delta)(nil), new(Delta), (*FilterAt)(nil), new(FilterAt), Geometry{}, Limits{}, Version{}, Key(0), Kind(0), Profile(0), Header{},
		new(FormatError),
	} {
		v := reflect.ValueOf(value)
		for i := range v.NumMethod() {
			method := v.Method(i)
			var args []reflect.Value
			for a := range method.Type().NumIn() {
				switch of := method.Type().In(a); of {
				case reflect.TypeFor[*Filter](): // a zero one is a case of its own
					args = append(args, reflect.ValueOf(real))
				case reflect.TypeFor[Geometry]():
					args = append(args, reflect.ValueOf(real.Geometry()))
				default:
					args = append(args, reflect.Zero(of))
				}
			}
			func() {
				defer func() {
					p := recover()
					if _, is := p.(runtime.Error); is || p != nil && !strings.Contains(fmt.Sprint(p), ": use ") {
						t.Errorf("%s of the zero %T, nil %v: panics with %v", v.Type().Method(i).Name, value, v.Kind() == reflect.Pointer && v.IsNil(), p)
					}
				}()
				method.Call(args)
			}()
		}
	}
}
