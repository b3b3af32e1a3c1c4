package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
)

// asPeer makes the test binary run as the program, so that tests can start peers as processes.
const asPeer = "TEST_BINARY_IS_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(asPeer) != "" {
		main()
		return
	}
	if os.Getenv(asCGI) != "" {
		runCGI()
		return
	}
	os.Exit(m.Run())
}

// A lockedBuffer can be read while a command writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// call runs the program in this process to its end.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return callWith(t.Context(), args...)
}

func callWith(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs lockedBuffer
	err := run(ctx, args, &out, &errs)
	code = complain(&errs, err)
	return code, out.String(), errs.String()
}

// The manual page and the completions are made from the same description as the help.
func TestManualAndCompletion(t *testing.T) {
	code, out, _ := call(t, "--man")
	heading, _, _ := strings.Cut(out, "\n")
	title := len("PEER(1)"+"PEER(1)  ") + strings.LastIndex(heading, `"`) - strings.LastIndex(heading, ` "`)
	if code != 0 || !strings.HasPrefix(heading, ".TH PEER 1 ") || title > 78 || !strings.Contains(out, `\fB--store-size`) {
		t.Errorf("--man = %d, with a heading of %d columns in %.200s", code, title, out)
	}
	if want := "\\fBdemo [flags]\\fP\n.PP\nRun a whole cluster on this machine"; !strings.Contains(out, want) {
		t.Errorf("--man lacks %q", want)
	}
	if code, out, _ := call(t, "--version"); code != 0 || out != thisBuild().String()+"\n" {
		t.Errorf("--version = %d, %s", code, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, out, errs := call(t, "completion", shell, "-c"); code != 0 || !strings.Contains(out, "complete") {
			t.Errorf("completion %s = %d, %s%s", shell, code, out, errs)
		}
	}
	for line, want := range map[string]string{"peer sta": "status\n", "peer run --store-s": "--store-size\n"} {
		t.Setenv("COMP_LINE", line)
		if code, out, errs := call(t); code != 0 || out != want {
			t.Errorf("%q completes to %q, %d%s", line, out, code, errs)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for name, c := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"nothing":           {nil, 0, "Usage: peer <command>", ""},
		"help":              {[]string{"--help"}, 0, "New here? See it work: peer demo", ""},
		"help of run":       {[]string{"run", "--help"}, 0, "--store-size=SIZE", ""},
		"help of demo":      {[]string{"demo", "-h"}, 0, "nothing is left behind", ""},
		"help, a command":   {[]string{"help"}, 0, "New here? See it work: peer demo", ""},
		"help, of run":      {[]string{"help", "run"}, 0, "--store-size=SIZE", ""},
		"a number by power": {[]string{"plan", "--objects", "1e6"}, 0, "objects 1000000", ""},
		"a part of one":     {[]string{"plan", "--objects", "1.5"}, 2, "", `--objects "1.5" is not a whole number`},
		"a negative number": {[]string{"demo", "--requests", "-1"}, 2, "", `peer: --requests "-1" is not a whole number between 0 and`},
		"no value":          {[]string{"run", "--publish"}, 2, "", "peer: --publish: no TIME behind it\nTry \"peer run --help\"."},
		"no number":         {[]string{"log", "--last", "x"}, 2, "", `peer: --last "x" is not a whole number between 1 and`},
		"no port":           {[]string{"members", "--admin", "nohost.invalid"}, 2, "", `peer: --admin "nohost.invalid" is not HOST:PORT`},
		"unknown command":   {[]string{"rnu"}, 2, "", `unexpected argument rnu, did you mean "run"?`},
		"unknown flag":      {[]string{"run", "--stroe", "x"}, 2, "", `unknown flag --stroe, did you mean "--store"?` + "\nTry \"peer run --help\"."},
		"flag of another":   {[]string{"demo", "--store", "x"}, 2, "", "unknown flag --store"},
		"stray argument":    {[]string{"status", "x"}, 2, "", "unexpected argument x"},
		"validate":          {[]string{"validate", "--name", "a"}, 0, "The configuration is good.", ""},
		"validate bad":      {[]string{"validate", "--drain", "x"}, 2, "", `--drain "x" is not a time`},
		"validate two":      {[]string{"validate", "--drain", "x", "--objects", "y"}, 2, "", "peer: 2 mistakes:\n  --objects \"y\""},
		"run bad":           {[]string{"run", "--name", "a b"}, 2, "", `--name "a b" contains ' '`},
		"status of nobody":  {[]string{"status", "--admin", "127.0.0.1:1"}, 1, "", "no peer answers at 127.0.0.1:1"},
		"inspect elsewhere": {[]string{"inspect", "./internal"}, 1, "", "./internal is a directory, but not that of a store"},
		"members of a URL":  {[]string{"members", "--admin", "http://127.0.0.1:3129"}, 2, "", `--admin "http://127.0.0.1:3129" is not HOST:PORT, such as 127.0.0.1:3129`},
		"members of nobody": {[]string{"members", "--admin", "127.0.0.1:1"}, 1, "", "connection refused"},
		"version":           {[]string{"version"}, 0, "peer ", ""},
		"version as JSON":   {[]string{"version", "--json"}, 0, `"go": "go1.`, ""},
		"demo of none":      {[]string{"demo", "--peers", "0"}, 2, "", `--peers "0" is not a whole number between 1 and 32`},
		"demo twice wrong":  {[]string{"demo", "--seed", "x", "--rate", "fast"}, 2, "", `--rate "fast" is not a number`},
		"no trace":          {[]string{"demo", "--trace", "/nonexistent"}, 1, "", "--trace: open /nonexistent: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(t, c.args...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("peer %q = %d\n%s%s\nwant %d with %q and %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
			}
			if (c.stderr == "") != (stderr == "") {
				t.Errorf("peer %q writes %q to stderr", c.args, stderr)
			}
		})
	}
}

func TestMisspeltVariableIsNoticed(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PEER_LISTN", "127.0.0.1:1")
	code, _, stderr := call(t, "validate", "--name", "a")
	if want := "the variable PEER_LISTN is not a setting, did you mean PEER_LISTEN?"; code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("peer validate = %d, %q, want %q", code, stderr, want)
	}
}

func TestBrokenTrace(t *testing.T) {
	path := t.TempDir() + "/broken.ptrace"
	if err := os.WriteFile(path, []byte("1 c /a 5\n2 c /b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, "demo", "--trace", path)
	if want := path + ":2: 3 fields where SECONDS CLIENT KEY SIZE has 4"; code != 1 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("peer demo = %d, %q, want 1 and %q", code, stderr, want)
	}
}
