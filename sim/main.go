// Command sim measures and simulates what the other packages promise. It
// opens no socket.
//
//	go run ./sim                  lists the experiments
//	go run ./sim NAME [flags]     runs one and prints its tables
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `usage: sim NAME [flags]

  --json        print JSON instead of tables
  --seed N      seed of everything random (default 1)
  --trials N    how often to repeat what is random, where an experiment does

experiments:
`

// run returns the exit code: 0 done, 1 the experiment failed, 2 a broken call.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	asJSON := flags.Bool("json", false, "")
	seed := flags.Uint64("seed", 1, "")
	trials := flags.Int("trials", 0, "")

	name, err := parseArgs(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp) || err == nil && name == "":
		fmt.Fprint(stdout, usage)
		experiments.list(stdout)
		return 0
	case err == nil && *trials < 0:
		err = fmt.Errorf("--trials %d: want 0 (the experiment's own number) or more", *trials)
	}
	if err != nil {
		fmt.Fprintf(stderr, "sim: %v\n", err)
		return 2
	}
	experiment, err := experiments.find(name)
	if err != nil {
		fmt.Fprintf(stderr, "sim: %v\n", err)
		return 2
	}
	job := newJob(name, *seed, *trials, stderr)
	if err := experiment.Run(ctx, job); err != nil {
		fmt.Fprintf(stderr, "sim: %s: %v\n", name, err)
		return 1
	}
	print := job.writeText
	if *asJSON {
		print = job.writeJSON
	}
	if err := print(stdout); err != nil {
		fmt.Fprintf(stderr, "sim: %s: %v\n", name, err)
		return 1
	}
	return 0
}

// parseArgs reads flags on either side of at most one name.
func parseArgs(flags *flag.FlagSet, args []string) (name string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return "", err
		}
		if flags.NArg() == 0 {
			return name, nil
		}
		if name != "" {
			return "", fmt.Errorf("one experiment at a time: %s or %s", name, strings.Join(flags.Args(), " "))
		}
		name, args = flags.Arg(0), flags.Args()[1:]
	}
}
