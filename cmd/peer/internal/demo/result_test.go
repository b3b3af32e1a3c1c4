package demo

import (
	"reflect"
	"testing"
)

// Every number of a row is part of the sum.
func TestRowsAddUp(t *testing.T) {
	var one, sum Row
	for _, part := range []any{&one, &one.Counts} {
		for i, v := range reflect.ValueOf(part).Elem().Fields() {
			if v.CanInt() {
				v.SetInt(int64(len(i.Name)))
			}
		}
	}
	sum.add(one)
	sum.add(one)
	for _, part := range []any{sum, sum.Counts} {
		for i, v := range reflect.ValueOf(part).Fields() {
			if v.CanInt() && v.Int() != int64(2*len(i.Name)) {
				t.Errorf("%s is %d, want %d", i.Name, v.Int(), 2*len(i.Name))
			}
		}
	}
}
