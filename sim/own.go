package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/summarycache/summarycache/digest"
)

// own are values of the caller's own, in place of those that an experiment has.
// Empty lists leave it to the experiment, whose Takes names the flags that there are.
type own struct {
	n        []int     // keys
	f        []float64 // rates of false positives
	c        []float64 // shares of the keys that are replaced
	geometry []shaped
}

// shaped is a filter's geometry for any number of keys.
type shaped struct {
	mn float64 // m/n
	k  int
}

// ownFlags are what Takes may name, and what help says of each.
var ownFlags = []struct{ name, help string }{
	{"n", "--n LIST        keys: 100 to 10,000,000 each, as in 1000,50000"},
	{"f", "--f LIST        rates of false positives, as in 0.01,0.0001"},
	{"c", "--c LIST        shares of the keys that are replaced between two versions, as in 0.01"},
	{"geometry", "--geometry LIST m/n and k, as in 92:1,14:2"},
}

// add defines the flags that takes names.
func (o *own) add(flags *flag.FlagSet, takes string) {
	share := func(s string) (float64, error) {
		return parseNumber(s, math.SmallestNonzeroFloat64, 1-1e-9, "more than 0 and less than 1")
	}
	parse := map[string]func(string) error{
		"f": func(text string) error { return parseList(text, &o.f, share) },
		"c": func(text string) error { return parseList(text, &o.c, share) },
		"n": func(text string) error {
			return parseList(text, &o.n, func(s string) (int, error) { return parseWhole(s, 100, 10_000_000, "100 to 10,000,000") })
		},
		"geometry": func(text string) error { return parseList(text, &o.geometry, parseShaped) },
	}
	for name := range strings.FieldsSeq(takes) {
		flags.Func(name, "", parse[name])
	}
}

func parseList[T any](text string, list *[]T, parse func(string) (T, error)) error {
	*list = nil
	for s := range strings.SplitSeq(text, ",") {
		v, err := parse(s)
		if err != nil {
			return err
		}
		*list = append(*list, v)
	}
	return nil
}

// parseNumber reads a number from least to most, which want says in words.
func parseNumber(s string, least, most float64, want string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= least && v <= most) {
		return 0, fmt.Errorf("%s: want %s", s, want)
	}
	return v, nil
}

func parseWhole(s string, least, most float64, want string) (int, error) {
	v, err := parseNumber(s, least, most, want)
	if err == nil && v != math.Trunc(v) {
		err = fmt.Errorf("%s: want %s", s, want)
	}
	return int(v), err
}

func parseShaped(s string) (g shaped, err error) {
	mn, k, _ := strings.Cut(s, ":")
	if g.mn, err = parseNumber(mn, 1, 1e6, "m/n of 1 to 1,000,000 and k, as in 92:1"); err == nil {
		g.k, err = parseWhole(k, 1, digest.MaxHashes, fmt.Sprintf("k of 1 to %d, as in 92:1", digest.MaxHashes))
	}
	return g, err
}

// takesHelp says which flags an experiment takes besides those of all.
func takesHelp(takes string) string {
	var b strings.Builder
	for _, f := range ownFlags {
		if slices.Contains(strings.Fields(takes), f.name) {
			b.WriteString("  " + f.help + "\n")
		}
	}
	return b.String()
}

// or returns the caller's values, or ours if there are none.
func or[T any](own, ours []T) []T {
	if len(own) > 0 {
		return own
	}
	return ours
}

// forEach runs a part of an experiment with each of the caller's values, or of ours.
func forEach[T any](ctx context.Context, job *Job, own, ours []T, part func(context.Context, *Job, T) error) error {
	for _, value := range or(own, ours) {
		if err := part(ctx, job, value); err != nil {
			return err
		}
	}
	return nil
}
