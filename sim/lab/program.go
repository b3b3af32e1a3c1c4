package lab

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Program runs experiments from a command line.
type Program struct {
	Experiments Registry
	Chapter     func(experiment string) string // its title in RESULTS.md; empty if it has none
}

// Run returns the exit code: 0 for success, 1 if the experiment failed, 2 for wrong arguments.
func (p Program) Run(args []string, stdout, stderr io.Writer) int {
	job := &Job{Stderr: stderr, start: time.Now(), command: "go run ./sim " + strings.Join(args, " ")}
	var csv bool
	flags := define(job, &csv)
	fail := func(code int, err error) int {
		fmt.Fprintf(stderr, "sim: %v\n", err)
		return code
	}
	if len(args) > 0 && args[0] == "help" {
		if args = args[1:]; len(args) > 0 {
			text, err := p.help(args)
			if err != nil {
				return fail(2, err)
			}
			io.WriteString(stdout, text)
			return 0
		}
	}
	experiment, err := job.parseArgs(p.Experiments, flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp) || err == nil && experiment.Name == "":
		io.WriteString(stdout, p.usage())
		return 0
	case err != nil:
	}
	if err != nil {
		return fail(2, err)
	}
	err = experiment.Run(job)
	if err == nil {
		write := job.writeText
		if csv {
			write = job.writeCSV
		}
		err = write(stdout)
	}
	switch _, broken := errors.AsType[usageError](err); {
	case err == nil:
		return 0
	case broken:
		return fail(2, fmt.Errorf("%s: %w", job.name, err))
	}
	return fail(1, fmt.Errorf("%s: %w", job.name, err))
}

// define defines the flags that every experiment has.
func define(job *Job, csv *bool) *flag.FlagSet {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(csv, "csv", false, "print CSV: a line \"# title\" before each table, values not rounded")
	flags.Uint64Var(&job.Seed, "seed", 1, "`N`, the seed of all random numbers (default 1)")
	NumberFlag(flags, &job.Trials, "trials", "number of filters or lookups in tables and trials", 1, 1_000_000_000)
	flags.StringVar(&job.Out, "out", "sim", "`DIR` in which experiments write files (default sim)")
	return flags
}

// usage lists the common flags and the experiments.
func (p Program) usage() string {
	var b strings.Builder
	b.WriteString("usage: sim NAME [flags]\n       sim help NAME    an experiment's flags, run time and chapter\n\n")
	b.WriteString(flagsHelp(define(new(Job), new(bool))))
	b.WriteString("\nexperiments:\n")
	p.Experiments.list(&b)
	return b.String()
}

// help describes one experiment and its flags.
func (p Program) help(args []string) (string, error) {
	e, err := p.Experiments.Find(args[0])
	if err == nil && len(args) > 1 {
		err = fmt.Errorf("one experiment at a time: help %s", strings.Join(args, " "))
	}
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(strings.TrimRight(fmt.Sprintf("usage: sim %s [flags] %s", e.Name, e.Args), " ") + "\n\n")
	b.WriteString(e.Summary + "\n")
	if title := p.Chapter(e.Name); title != "" {
		fmt.Fprintf(&b, "\nRESULTS.md shows it under %q.\n", title)
	}
	took := "less than a second"
	if e.Seconds > 0 {
		took = fmt.Sprintf("%d s", e.Seconds)
	} else if e.Seconds < 0 {
		took = "some minutes"
	}
	fmt.Fprintf(&b, "\nIt took %s of CPU time, on one core of a server of 2026.\n", took)
	if strings.Contains(e.Args, "TRACE") {
		b.WriteString("\nTRACE is plain, gzip or Zstandard: lines of SECONDS CLIENT KEY SIZE, " +
			"or an access log: Common, Combined, Squid's native log or JSON.\n")
	}
	own := flag.NewFlagSet(e.Name, flag.ContinueOnError)
	e.Prepare(own)
	if list := flagsHelp(own); list != "" {
		fmt.Fprintf(&b, "\n%s", list)
	}
	return b.String(), nil
}

// A usageError means that an experiment refuses its arguments. sim then exits with 2.
type usageError struct{ error }

func Usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// parseArgs reads the experiment's name, the flags before and after it, and the experiment's
// arguments. The returned experiment's Run uses the values of its own flags. Without a name,
// the experiment has none either.
func (j *Job) parseArgs(experiments Registry, flags *flag.FlagSet, args []string) (e Experiment, err error) {
	for {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			return e, err
		} else if err != nil {
			return e, fmt.Errorf("%w (%s lists the flags)", err, strings.TrimRight("sim help "+e.Name, " "))
		}
		if flags.NArg() == 0 {
			break
		}
		switch arg := flags.Arg(0); {
		case e.Name == "":
			if e, err = experiments.Find(arg); err != nil {
				return e, err
			}
			j.name, e.Run = e.Name, e.Prepare(flags)
		case e.Args == "":
			return e, fmt.Errorf("one experiment at a time: %s or %s", j.name, strings.Join(flags.Args(), " "))
		default:
			j.Args = append(j.Args, arg)
		}
		args = flags.Args()[1:]
	}
	return e, nil
}
