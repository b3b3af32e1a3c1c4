// Command sim measures and simulates what the other packages promise. It
// opens no socket.
//
//	go run ./sim                  lists the experiments
//	go run ./sim NAME [flags]     runs one and prints its tables
//	go run ./sim help NAME        says what it takes
//	go run ./sim results          runs those of RESULTS.md and writes it
//
// Equal seeds print equal numbers, timings apart.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `usage: sim NAME [flags]
       sim help NAME    what one takes, how long it took, and its chapter

  --json        print JSON instead of tables
  --csv         print CSV: a line "# title" before each table, values unrounded
  --seed N      seed of everything random (default 1)
  --seeds N     run it with N seeds, from that on: the means, with confidence intervals
  --trials N    of how many filters or lookups: counters, hashing, tables, trials
  --out DIR     where experiments that write files put them (default sim)

experiments:
`

// run returns the exit code: 0 done, 1 the experiment failed, 2 a broken call,
// 130 interrupted.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	job := &Job{stderr: stderr, start: time.Now()}
	asJSON := flags.Bool("json", false, "")
	asCSV := flags.Bool("csv", false, "")
	flags.Uint64Var(&job.Seed, "seed", 1, "")
	seeds := flags.Int("seeds", 1, "")
	flags.IntVar(&job.Trials, "trials", 0, "")
	flags.StringVar(&job.Out, "out", "sim", "")

	if len(args) > 0 && args[0] == "help" {
		if args = args[1:]; len(args) > 0 {
			return help(args, stdout, stderr)
		}
	}
	experiment, err := job.parseArgs(flags, args)
	if err == nil && *asJSON && *asCSV {
		err = errors.New("--json or --csv")
	}
	switch {
	case err != nil || experiment == nil:
	case *seeds < 1:
		err = fmt.Errorf("--seeds %d: want 1 or more", *seeds)
	case *seeds > 1 && experiment.Writes:
		err = fmt.Errorf("%s writes files, of one seed", experiment.Name)
	}
	if errors.Is(err, flag.ErrHelp) || err == nil && experiment == nil {
		var b strings.Builder
		b.WriteString(usage)
		experiments.list(&b)
		io.WriteString(stdout, reflowed(b.String()))
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "sim: %v\n", err)
		return 2
	}
	name := experiment.Name
	if err := runUntil(ctx, func() error { return job.repeat(ctx, experiment, *seeds) }); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(stderr, "sim: %s: interrupted after %.0f s\n", name, time.Since(job.start).Seconds())
			return 130
		}
		fmt.Fprintf(stderr, "sim: %s: %v\n", name, err)
		if _, broken := errors.AsType[usageError](err); broken {
			return 2
		}
		return 1
	}
	print := job.writeText
	switch {
	case *asJSON:
		print = job.writeJSON
	case *asCSV:
		print = job.writeCSV
	}
	if err := print(stdout); err != nil {
		fmt.Fprintf(stderr, "sim: %s: %v\n", name, err)
		return 1
	}
	return 0
}

// help prints what one experiment does and takes.
func help(args []string, stdout, stderr io.Writer) int {
	e, err := experiments.find(args[0])
	if err == nil && len(args) > 1 {
		err = fmt.Errorf("one experiment at a time: help %s", strings.Join(args, " "))
	}
	if err != nil {
		fmt.Fprintf(stderr, "sim: %v\n", err)
		return 2
	}
	var b strings.Builder
	fmt.Fprintf(&b, "usage: sim %s [flags]", e.Name)
	if e.Args != "" {
		fmt.Fprintf(&b, " %s", e.Args)
	}
	fmt.Fprintf(&b, "\n\n%s\n", e.Summary)
	for _, c := range chapters {
		if c.experiment == e.Name {
			fmt.Fprintf(&b, "\nRESULTS.md shows it under %q.\n", c.title)
		}
	}
	took := "less than a second"
	if s := cpuSeconds[e.Name]; s > 0 {
		took = fmt.Sprintf("%d s", s)
	} else if s < 0 {
		took = "some minutes"
	}
	fmt.Fprintf(&b, "\nIt took %s of CPU, on one core of a server of 2026.\n", took)
	if e.Takes != "" {
		fmt.Fprintf(&b, "\nin place of its own values:\n%s", takesHelp(e.Takes))
	}
	if e.Help != "" {
		fmt.Fprintf(&b, "\n%s", e.Help)
	}
	io.WriteString(stdout, reflowed(b.String()))
	return 0
}

// runUntil runs an experiment, or gives it up a moment after ctx has ended:
// files are written whole or not at all, so nothing is lost by leaving it.
func runUntil(ctx context.Context, run func() error) error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(500 * time.Millisecond):
		return ctx.Err()
	}
}

// A usageError is an experiment's refusal of its arguments: sim exits with 2.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// parseArgs reads the experiment's name, with flags on either side of it, and
// whatever arguments the experiment takes. No name gives no experiment.
func (j *Job) parseArgs(flags *flag.FlagSet, args []string) (*Experiment, error) {
	var experiment *Experiment
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			break
		}
		switch arg := flags.Arg(0); {
		case experiment == nil:
			found, err := experiments.find(arg)
			if err != nil {
				return nil, err
			}
			experiment, j.name = &found, found.Name
			j.own.add(flags, found.Takes)
			if found.Flags != nil {
				j.options = found.Flags(flags)
			}
		case experiment.Args == "":
			return nil, fmt.Errorf("one experiment at a time: %s or %s", j.name, strings.Join(flags.Args(), " "))
		default:
			j.Args = append(j.Args, arg)
		}
		args = flags.Args()[1:]
	}
	var err error
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "trials" && j.Trials < 1 {
			err = fmt.Errorf("--trials %d: want 1 or more", j.Trials)
		}
	})
	return experiment, err
}
