package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// grammar is the command line. Kong makes parser and help of it.
type grammar struct {
	Run      runCommand      `cmd:"" help:"Run a peer until it is told to stop."`
	Demo     demoCommand     `cmd:"" help:"Run a whole cluster on this machine, put a workload through it and show what came of it."`
	Status   statusCommand   `cmd:"" help:"Show how a running peer does."`
	Members  membersCommand  `cmd:"" help:"Show the cluster as a running peer knows it."`
	Why      whyCommand      `cmd:"" help:"Say what a running peer would do with a request, and why."`
	Purge    purgeCommand    `cmd:"" help:"Remove a URL from a running peer's store, or from everyone's."`
	Inspect  inspectCommand  `cmd:"" help:"Take apart a digest: a file's or a running peer's."`
	Plan     planCommand     `cmd:"" help:"Work out which digest suits a cluster, and what it costs."`
	Replay   replayCommand   `cmd:"" help:"Send a request trace to a running cluster and show which way the answers came."`
	Validate validateCommand `cmd:"" help:"Check the configuration that run would use, and show it."`
	Version  versionCommand  `cmd:"" help:"Show which build this is."`
}

// An environment is what a command works with.
type environment struct {
	ctx            context.Context
	args           []string // the command line
	stdout, stderr io.Writer
}

// misuse is an error in how the program was called: exit code 2.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// leave is what kong's exit function panics with, since the help must end the
// parse and nothing but main may end the process.
type leave int

// run is the program: it parses args and runs the command until it is done or
// ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case leave: // the help was printed
		default:
			panic(r)
		}
	}()
	var g grammar
	parser, err := newParser(&g, stdout, stderr)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		parser.Parse([]string{"--help"})
	}
	command, err := parser.Parse(args)
	if err != nil {
		return misuse{fmt.Errorf("%w\n%s", err, hint(err))}
	}
	return command.Run(&environment{ctx, args, stdout, stderr})
}

// newParser makes the parser of a command line, which panics with leave in place
// of ending the process.
func newParser(g *grammar, stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(g,
		kong.Name("peer"),
		kong.Description("An HTTP cache that shares what it holds with its neighbours."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(leave(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "Cluster", Title: "The cluster"}, {Key: "Cache", Title: "The cache"},
			{Key: "Digest", Title: "The digest, which tells the others what this peer holds"},
			{Key: "Operation", Title: "Operation"},
		}),
		kong.Help(help),
	)
}

// help prints kong's help, and below that of the whole program where to begin.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	if ctx.Selected() == nil {
		fmt.Fprint(ctx.Stdout, "\nNew here? See it work: peer demo\n")
	}
	return nil
}

// hint says where the help for what was mistyped is.
func hint(err error) string {
	command := "peer"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
		command += " " + parse.Context.Selected().Name
	}
	return fmt.Sprintf("Try %q.", command+" --help")
}

// complain tells err to people and returns the exit code: 0 for none, 1 for
// failure, 2 for misuse.
func complain(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code, kind := 1, "errors"
	if errors.As(err, new(misuse)) {
		code, kind = 2, "mistakes"
	}
	each := leaves(err)
	if len(each) == 1 {
		fmt.Fprintf(w, "peer: %v\n", each[0])
		return code
	}
	fmt.Fprintf(w, "peer: %d %s:\n", len(each), kind)
	for _, e := range each {
		fmt.Fprintf(w, "  %v\n", e)
	}
	return code
}

// leaves takes joined errors apart.
func leaves(err error) (each []error) {
	switch e := err.(type) {
	case misuse:
		return leaves(e.error)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			each = append(each, leaves(inner)...)
		}
		return each
	}
	return []error{err}
}
