package lab

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A Shape is a filter's geometry for any number of keys.
type Shape struct {
	MN float64 // m/n
	K  int
}

func (s Shape) String() string { return fmt.Sprintf("%g:%d", s.MN, s.K) }

// The flags of several experiments. Each is a list, with these values unless the user gives
// others.

func KeysFlag(flags *flag.FlagSet, values ...int) *[]int {
	return ListFlag(flags, "n", "`LIST` of numbers of keys", 100, 10_000_000, values)
}

func RatesFlag(flags *flag.FlagSet, values ...float64) *[]float64 {
	return sharesNamed(flags, "f", "`LIST` of false-positive rates", values)
}

func SharesFlag(flags *flag.FlagSet, values ...float64) *[]float64 {
	usage := "`LIST` of shares of the keys that are replaced between two versions"
	if len(values) == 0 {
		usage += "; with it deltas are measured, without it filters"
	}
	return sharesNamed(flags, "c", usage, values)
}

// sharesNamed defines a flag for a list of numbers between 0 and 1.
func sharesNamed(flags *flag.FlagSet, name, usage string, values []float64) *[]float64 {
	addList(flags, name, usage, &values, func(s string) (float64, error) {
		v, err := parse[float64](s, 0, 1)
		if err == nil && (v == 0 || v == 1) {
			err = fmt.Errorf("%s: want more than 0 and less than 1", s)
		}
		return v, err
	})
	return &values
}

func ShapesFlag(flags *flag.FlagSet, values ...Shape) *[]Shape {
	addList(flags, "geometry", "`LIST` of m/n and k, as in 92:1,14:2", &values, func(s string) (g Shape, err error) {
		mn, k, _ := strings.Cut(s, ":")
		if g.MN, err = parse(mn, 1.0, 1e6); err == nil {
			g.K, err = parse(k, 1, digest.MaxHashes)
		}
		if err != nil {
			err = fmt.Errorf("m/n and k, as in 92:1: %w", err)
		}
		return g, err
	})
	return &values
}

// ListFlag defines a flag for numbers between commas, each from least to most.
func ListFlag[T number](flags *flag.FlagSet, name, usage string, least, most T, values []T) *[]T {
	addList(flags, name, fmt.Sprintf("%s, each %v to %v", usage, least, most), &values, func(s string) (T, error) { return parse(s, least, most) })
	return &values
}

func addList[T any](flags *flag.FlagSet, name, usage string, values *[]T, parse func(string) (T, error)) {
	if len(*values) > 0 {
		usage += fmt.Sprintf(" (default %s)", strings.Trim(strings.ReplaceAll(fmt.Sprint(*values), " ", ","), "[]"))
	}
	flags.Func(name, usage, func(text string) error {
		*values = nil
		for s := range strings.SplitSeq(text, ",") {
			v, err := parse(s)
			if err != nil {
				return err
			}
			*values = append(*values, v)
		}
		return nil
	})
}

type number interface{ int | float64 | time.Duration }

// NumberFlag defines a flag for a number from least to most. The default is the value of *to; 0
// or less means that there is none.
func NumberFlag[T number](flags *flag.FlagSet, to *T, name, usage string, least, most T) {
	usage = fmt.Sprintf("%s (%v to %v", usage, least, most)
	if *to > 0 {
		usage += fmt.Sprintf(", default %v", *to)
	}
	flags.Func(name, usage+")", func(text string) (err error) {
		*to, err = parse(text, least, most)
		return err
	})
}

// parse reads a number from least to most.
func parse[T number](s string, least, most T) (T, error) {
	v, err := strconv.ParseFloat(s, 64)
	if _, timed := any(least).(time.Duration); timed {
		var d time.Duration
		d, err = time.ParseDuration(s)
		v = float64(d)
	}
	if err != nil || !(v >= float64(least) && v <= float64(most)) || float64(T(v)) != v {
		return 0, fmt.Errorf("%s: want %v to %v", s, least, most)
	}
	return T(v), nil
}

// Or returns the user's values, or ours if there are none.
func Or[T any](own, ours []T) []T {
	if len(own) > 0 {
		return own
	}
	return ours
}

// ForEach runs a part of an experiment for each value.
func ForEach[T any](values []T, part func(T) error) error {
	for _, value := range values {
		if err := part(value); err != nil {
			return err
		}
	}
	return nil
}

// flagsHelp returns the flags' help, in lines that fit a terminal.
func flagsHelp(flags *flag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		if value == "value" {
			value = "N"
		}
		paragraph(&b, fmt.Sprintf("  --%-15s ", strings.TrimSpace(f.Name+" "+value)), strings.Repeat(" ", 20), usage)
	})
	return b.String()
}

// A Input is a filter of n keys, m = mn·n positions and k hashes or, with
// c > 0, the exclusive-or of two between which a share c of the keys was replaced.
type Input struct {
	N  int
	MN float64
	K  int
	C  float64
}

// OwnInputs returns the inputs that the flags ask for: each geometry for each number of keys,
// and for each share if there are shares. Without flags there are none.
func OwnInputs(keys []int, shares []float64, shapes []Shape) (all []Input) {
	if len(keys)+len(shares)+len(shapes) == 0 {
		return nil
	}
	for _, n := range Or(keys, []int{100_000}) {
		for _, g := range Or(shapes, []Shape{{14, 2}, {92, 1}}) {
			for _, c := range Or(shares, []float64{0}) {
				all = append(all, Input{n, g.MN, g.K, c})
			}
		}
	}
	return all
}

func (in Input) Name() string {
	name := fmt.Sprintf("n=%d (%g,%d)", in.N, in.MN, in.K)
	if in.C > 0 {
		name += fmt.Sprintf(" delta %g %%", 100*in.C)
	}
	return name
}
