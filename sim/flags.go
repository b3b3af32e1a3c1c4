package main

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A shape is a filter's geometry for any number of keys.
type shape struct {
	mn float64 // m/n
	k  int
}

func (s shape) String() string { return fmt.Sprintf("%g:%d", s.mn, s.k) }

// The flags of several experiments. Each is a list, with these values unless the user gives
// others.

func keysFlag(flags *flag.FlagSet, values ...int) *[]int {
	return listFlag(flags, "n", "`LIST` of numbers of keys", 100, 10_000_000, values)
}

func ratesFlag(flags *flag.FlagSet, values ...float64) *[]float64 {
	return sharesNamed(flags, "f", "`LIST` of false-positive rates", values)
}

func sharesFlag(flags *flag.FlagSet, values ...float64) *[]float64 {
	return sharesNamed(flags, "c", "`LIST` of shares of the keys that are replaced between two versions", values)
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

func shapesFlag(flags *flag.FlagSet, values ...shape) *[]shape {
	addList(flags, "geometry", "`LIST` of m/n and k, as in 92:1,14:2", &values, func(s string) (g shape, err error) {
		mn, k, _ := strings.Cut(s, ":")
		if g.mn, err = parse(mn, 1.0, 1e6); err == nil {
			g.k, err = parse(k, 1, digest.MaxHashes)
		}
		if err != nil {
			err = fmt.Errorf("m/n and k, as in 92:1: %w", err)
		}
		return g, err
	})
	return &values
}

// listFlag defines a flag for numbers between commas, each from least to most.
func listFlag[T number](flags *flag.FlagSet, name, usage string, least, most T, values []T) *[]T {
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

// numberFlag defines a flag for a number from least to most. The default is the value of *to; 0
// or less means that there is none.
func numberFlag[T number](flags *flag.FlagSet, to *T, name, usage string, least, most T) {
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

// or returns the user's values, or ours if there are none.
func or[T any](own, ours []T) []T {
	if len(own) > 0 {
		return own
	}
	return ours
}

// forEach runs a part of an experiment for each value.
func forEach[T any](values []T, part func(T) error) error {
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
