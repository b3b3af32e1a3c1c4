package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/summarycache/summarycache/digest"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "keyset:", err)
		os.Exit(1)
	}
}

var (
	errUsage  = errors.New("want make DIR, has DIR|URL KEY..., or follow URL DIR (see -h of each)")
	errAbsent = errors.New("not all keys are there")
)

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("keyset "+args[0], flag.ContinueOnError)
	kind := flags.String("kind", "lines", "make: what the keys are: lines, nix (store paths) or sha256 (layers, CAS)")
	rate := flags.Float64("rate", 0.001, "make: share of absent keys that are said to be there")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	a := append(flags.Args(), "", "")
	switch command := fmt.Sprint(args[0], " ", min(flags.NArg(), 2)); command {
	case "make 1":
		keys, err := readKeys(in, *kind)
		if err != nil {
			return err
		}
		return publish(a[0], keys, *kind, *rate, out)
	case "has 2":
		return has(a[0], flags.Args()[1:], out)
	case "follow 2":
		return follow(a[0], a[1], out)
	}
	return errUsage
}

// readKeys reads the keys of lines.
func readKeys(r io.Reader, kind string) (keys []digest.Key, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		k, err := keyOf(kind, lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(keys)+1, err)
		}
		keys = append(keys, k)
	}
	if err := lines.Err(); err != nil || len(keys) == 0 {
		return nil, fmt.Errorf("after line %d: %w", len(keys), cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return keys, nil
}

// hashes says how hashes are written: of how many letters and of which.
var hashes = map[string]struct {
	length  int
	letters string
}{"nix": {32, "0123456789abcdfghijklmnpqrsvwxyz"}, "sha256": {64, "0123456789abcdef"}}

// keyOf returns the key of a line, or of the hash in it: the first run of so many of its letters.
func keyOf(kind string, line []byte) (digest.Key, error) {
	if kind == "lines" {
		return digest.KeyOf(0, line), nil
	}
	h, known := hashes[kind]
	if !known {
		return 0, fmt.Errorf("--kind: %q is none of lines, nix and sha256", kind)
	}
	run := 0 // letters up to here
	for i := 0; i <= len(line); i++ {
		switch {
		case i < len(line) && strings.IndexByte(h.letters, line[i]) >= 0:
			run++
		case run == h.length:
			return digest.KeyOf(0, line[i-run:i]), nil
		default:
			run = 0
		}
	}
	return 0, fmt.Errorf("%.100q has no hash of %d letters", line, h.length)
}

// has says for each key whether it is there, and reads one piece of the snapshot for it.
func has(at string, keys []string, out io.Writer) error {
	m, err := readManifest(at)
	if err != nil {
		return err
	}
	f, err := digest.OpenFilter(piecewise{at, m.Snapshot.Name}, m.Head, limits)
	if err != nil {
		return err
	}
	var absent error
	for _, key := range keys {
		k, err := keyOf(m.Kind, []byte(key))
		if err != nil {
			return err
		}
		yes, err := f.MayContain(k)
		if err != nil {
			return err
		}
		if fmt.Fprintln(out, yes, key); !yes {
			absent = errAbsent
		}
	}
	return absent
}
