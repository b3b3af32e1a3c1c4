package main

import (
	"flag"
	"fmt"
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
	share := func(list *[]float64) func(string) error {
		return func(text string) error {
			return parseList(text, list, func(s string) (float64, error) {
				v, err := strconv.ParseFloat(s, 64)
				if err == nil && !(v > 0 && v < 1) {
					err = fmt.Errorf("%s: want more than 0 and less than 1", s)
				}
				return v, err
			})
		}
	}
	parse := map[string]func(string) error{
		"f": share(&o.f),
		"c": share(&o.c),
		"n": func(text string) error {
			return parseList(text, &o.n, func(s string) (int, error) {
				v, err := strconv.Atoi(s)
				if err == nil && (v < 100 || v > 10_000_000) {
					err = fmt.Errorf("%d: want 100 to 10,000,000", v)
				}
				return v, err
			})
		},
		"geometry": func(text string) error { return parseList(text, &o.geometry, parseShaped) },
	}
	for _, name := range strings.Fields(takes) {
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

func parseShaped(s string) (g shaped, err error) {
	mn, k, found := strings.Cut(s, ":")
	if !found {
		return g, fmt.Errorf("%s: want m/n and k, as in 92:1", s)
	}
	if g.mn, err = strconv.ParseFloat(mn, 64); err == nil {
		g.k, err = strconv.Atoi(k)
	}
	if err == nil && !(g.mn >= 1 && g.mn <= 1e6 && g.k >= 1 && g.k <= digest.MaxHashes) {
		err = fmt.Errorf("%s: want m/n of 1 to 1,000,000 and k of 1 to %d", s, digest.MaxHashes)
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
