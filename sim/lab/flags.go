package lab

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"
)

type number interface{ int | float64 | time.Duration }

// NumberFlag defines a flag for a number from least to most. The default is the value of *to; 0
// or less means that there is none.
func NumberFlag[T number](flags *flag.FlagSet, to *T, name, usage string, least, most T) {
	usage = fmt.Sprintf("%s (%v to %v", usage, least, most)
	if *to > 0 {
		usage += fmt.Sprintf(", default %v", *to)
	}
	flags.Func(name, usage+")", func(text string) (err error) {
		*to, err = parseNumber(text, least, most)
		return err
	})
}

// parseNumber reads a number from least to most.
func parseNumber[T number](s string, least, most T) (T, error) {
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

// flagsHelp returns the flags' help, a line each.
func flagsHelp(flags *flag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		if value == "value" {
			value = "N"
		}
		fmt.Fprintf(&b, "  --%-15s %s\n", strings.TrimSpace(f.Name+" "+value), usage)
	})
	return b.String()
}
