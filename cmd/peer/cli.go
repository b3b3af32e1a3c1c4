package main

import (
	"context"
	_ "embed" // for the commands
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	mangokong "github.com/alecthomas/mango-kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/sim/workload"
)

// commandFlags says what the flags of commands are for.
//
//go:embed commands.help
var commandFlags string

// grammar is the command line, from which kong makes the parser and the help.
type grammar struct {
	Run      runCommand      `cmd:"" help:"Run a peer until it is stopped."`
	Demo     demoCommand     `cmd:"" help:"Run a whole cluster on this machine, send a workload through it and show the result."`
	Status   statusCommand   `cmd:"" help:"Show the state of a running peer."`
	Members  membersCommand  `cmd:"" help:"Show the cluster as a running peer sees it."`
	Why      whyCommand      `cmd:"" help:"Show what a running peer would do with a request, and why."`
	Log      logCommand      `cmd:"" help:"Show the last requests that peers did not answer from their stores, and why."`
	Top      topCommand      `cmd:"" help:"Show for which URLs, sites or reasons most requests are no hits."`
	Open     openCommand     `cmd:"" help:"Print a link to a running peer's status page, with a token for its buttons."`
	Reload   reloadCommand   `cmd:"" help:"Have a running peer read its configuration again."`
	Replace  replaceCommand  `cmd:"" help:"Have the program file of a running peer, such as an upgraded one, continue in its place."`
	Purge    purgeCommand    `cmd:"" help:"Remove a URL from the store of a running peer, or of all peers."`
	Inspect  inspectCommand  `cmd:"" help:"Decode a digest from a file or a running peer."`
	Plan     planCommand     `cmd:"" help:"Compute a cluster's digest settings and their cost, or what peers would save on the traffic of a log."`
	Validate validateCommand `cmd:"" help:"Check the configuration that run would use, and show it."`
	Version  versionCommand  `cmd:"" help:"Print the build."`

	Completion kongcompletion.Completion `cmd:"" help:"Print how to set up completion of commands and flags in bash, zsh or fish."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the build."`
	Man         manFlag          `name:"man" help:"Print the manual page, for man -l -."`
}

// A manFlag prints the manual page and ends the parse.
type manFlag bool

// BeforeApply has each command's help before its detail, behind the command's line. The page has a
// place for usage alone there, and mango-kong puts the detail into it.
func (m manFlag) BeforeApply(app *kong.Kong) error {
	for _, c := range app.Model.Children {
		c.Detail = c.Summary() + "\n" + c.Help + "\n" + c.Detail
		c.Help = ""
	}
	return mangokong.ManFlag(m).BeforeApply(app)
}

// An environment is the context of a command.
type environment struct {
	ctx            context.Context
	args           []string // the command line
	stdout, stderr io.Writer
}

// misuse is an error in how the program was called: exit code 2.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// leave is the value with which kong's exit function panics: the help must end the parse, but only main
// may end the process.
type leave int

// run is the program: it parses args and runs the command until it is done or ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case leave: // kong printed the help, the version or the manual
		default:
			panic(r)
		}
	}()
	var g grammar
	parser, flags, err := newParser(&g, stdout, stderr)
	if err != nil {
		return err
	}
	kongcompletion.Register(parser) // a shell requests completions by variables
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	command, err := parser.Parse(args)
	if err != nil {
		return misuse{errors.New(mistake(err))}
	}
	if err := flags.Err(command); err != nil {
		return misuse{err}
	}
	return command.Run(&environment{ctx, args, stdout, stderr}, flags)
}

// newParser returns the parser of a command line and the decoder of its flags. The parser panics with
// leave instead of ending the process.
func newParser(g *grammar, stdout, stderr io.Writer) (*kong.Kong, *config.Flags, error) {
	flags, options := config.NewFlags(commandFlags)
	parser, err := kong.New(g, append(options,
		kong.Name("peer"),
		kong.Description("A cooperative HTTP cache\n\nIt shares its contents with the other caches of a cluster."),
		kong.Writers(stdout, stderr),
		kong.Vars{"version": thisBuild().String(), "formats": workload.Formats},
		kong.Exit(func(code int) { panic(leave(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Help(help),
	)...)
	return parser, flags, err
}

// help prints kong's help. For the whole program it adds a first step for newcomers.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	if ctx.Selected() == nil {
		fmt.Fprint(ctx.Stdout, "\nNew here? See it work: peer demo\n")
	}
	return nil
}

// mistake returns what is wrong with a command line, and a hint at the help. Kong names the command only
// before some mistakes.
func mistake(err error) string {
	command, text := "peer", err.Error()
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
		command += " " + parse.Context.Selected().Name
		text = strings.TrimPrefix(text, parse.Context.Selected().Name+": ")
	}
	return fmt.Sprintf("%s\nTry %q.", text, command+" --help")
}

// complain prints err and returns the exit code: 0 for no error, 1 for a failure, 2 for misuse.
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

// leaves splits joined errors.
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
