package digest

import (
	"errors"
	"math"
	"testing"
)

// TestSettings: an argument or field that cannot work is refused by name, or works: its zero value, its extremes and its commonest
// mistake.
func TestSettings(t *testing.T) {
	good := Geometry{Bits: 1 << 20, Hashes: 2}
	set := func(g Geometry) error { _, err := NewSet(g, 1); return err }
	plan := func(keys uint64, rate float64, p Profile) error { _, err := PlanSet(keys, rate, p, 0, 1); return err }
	message := func() []byte {
		f, _ := FilterOf(good, Version{Epoch: 1}, func(yield func(Key) bool) { yield(1) })
		return f.AppendTo(nil)
	}()
	decode := func(l Limits) error { _, err := DecodeFilter(message, l); return err }
	for name, tc := range map[string]struct{ got, want error }{
		"the zero Geometry":           {set(Geometry{}), errGeometry},
		"no bits":                     {set(Geometry{Hashes: 1}), errGeometry},
		"no hashes":                   {set(Geometry{Bits: 1}), errGeometry},
		"the smallest geometry":       {set(Geometry{Bits: 1, Hashes: 1}), nil},
		"the largest geometry":        {set(Geometry{Bits: maxBits, Hashes: maxHashes}), nil},
		"more bits":                   {set(Geometry{Bits: maxBits + 1, Hashes: 1}), errGeometry},
		"more hashes":                 {set(Geometry{Bits: 1, Hashes: maxHashes + 1}), errGeometry},
		"hashes below 0":              {set(Geometry{Bits: 1, Hashes: -1}), errGeometry},
		"a set of any profile":        {set(Geometry{Bits: 1, Hashes: 1, Profile: AnyProfile}), errGeometry},
		"a private profile":           {set(Geometry{Bits: 1, Hashes: 1, Profile: 128}), nil},
		"no keys":                     {plan(0, 0.001, HTTP), errGeometry},
		"one key":                     {plan(1, 0.001, HTTP), nil},
		"a rate of 0":                 {plan(1, 0, HTTP), errGeometry},
		"a rate of 1":                 {plan(1, 1, HTTP), errGeometry},
		"a rate in percent":           {plan(1, 5, HTTP), errGeometry},
		"a rate that is no number":    {plan(1, math.NaN(), HTTP), errGeometry},
		"too small a rate":            {plan(1<<40, 1e-300, HTTP), ErrTooLarge},
		"too many keys":               {plan(math.MaxUint64, 0.5, HTTP), ErrTooLarge},
		"planned for any profile":     {plan(1, 0.001, AnyProfile), errGeometry},
		"the zero Limits":             {decode(Limits{}), nil},
		"limits below 0":              {decode(Limits{Bytes: -1, Memory: -1}), nil}, // the defaults
		"a limit of a byte":           {decode(Limits{Bytes: 1}), ErrTooLarge},
		"a limit of a byte of memory": {decode(Limits{Memory: 1}), ErrTooLarge},
		"a limit of a bit":            {decode(Limits{Bits: 1}), ErrTooLarge},
		"a seed that it has not":      {decode(Limits{Seed: 1}), ErrSeed},
		"a profile that it has not":   {decode(Limits{Profile: HTTP}), ErrSeed},
		"any profile":                 {decode(Limits{Profile: AnyProfile}), nil},
	} {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
	c, err := NewCountingFilter(good, 0)
	if err != nil || c.Current().Version().Epoch != 1 {
		t.Errorf("NewCountingFilter of epoch 0: %v, %v", c.Current().Version(), err)
	}
	within(c).OnChange(func() { t.Error("the former function is called") })
	within(c).OnChange(nil)
	c.Add(1)
	for _, bytes := range []int{-1, 0} {
		h := NewHistory(bytes)
		first := c.Advance()
		h.Advance(first)
		c.Add(Key(bytes))
		h.Advance(c.Advance())
		if _, _, ok := h.Since(first.Version()); ok {
			t.Errorf("NewHistory(%d) keeps a delta", bytes)
		}
	}
}
