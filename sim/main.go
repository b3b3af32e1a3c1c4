// Command sim reproduces the papers' tables and figures, and simulates whole systems. It opens no socket.
//
//	go run ./sim                  lists the experiments
//	go run ./sim NAME [flags]     runs one and prints its tables
//	go run ./sim help NAME        lists its flags
//	go run ./sim results          runs the experiments of RESULTS.md and writes it
//
// Equal seeds print equal numbers, except for times.
package main

import (
	"io"
	"os"

	"github.com/summarycache/summarycache/sim/lab"
	"github.com/summarycache/summarycache/sim/papers"
	"github.com/summarycache/summarycache/sim/systems"
)

var experiments = lab.Registry{}.Add(papers.Experiments...).Add(systems.Experiments...)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run may be killed at any time: files are written whole or not at all.
func run(args []string, stdout, stderr io.Writer) int {
	return lab.Program{Experiments: experiments, Chapter: chapterOf}.Run(args, stdout, stderr)
}
