package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"
)

// others are programs that pages may use and that are not checked.
var others = []string{"curl", "docker", "sleep", "head", "base64", "openssl", "systemctl", "cp", "install", "kill", "mkdir", "git", "cd", "python3", "apt-get", "squid", "wget", "dpkg", "vi", "journalctl"}

// Every command in a shell block can be typed: the programs of this repository exist and accept
// these flags, and named tests exist.
func TestPagesCommands(t *testing.T) {
	n, flags := 0, anyFlag(t)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "sh" && b.language != "console" {
				continue
			}
			for _, words := range commands(b) {
				n++
				if why := wrong(t, words); why != "" {
					t.Errorf("%s:%d: %q: %s", p.path, b.line, strings.Join(words, " "), why)
				}
			}
		}
		for _, span := range p.code() {
			words := strings.Fields(span)
			switch {
			case len(words) == 0:
			case words[0] == "peer" && len(words) > 1 && !strings.Contains(span, "…") || strings.HasPrefix(span, "go run ./") || strings.HasPrefix(span, "go test "):
				n++
				if why := wrong(t, split(span)); why != "" && !strings.Contains(why, "expected ") && !strings.Contains(why, "missing flags") {
					t.Errorf("%s: `%s`: %s", p.path, span, why)
				}
			case regexp.MustCompile(`^--[a-z]`).MatchString(span):
				n++
				if name, _, _ := strings.Cut(strings.TrimLeft(words[0], "-"), "="); !flags[name] {
					t.Errorf("%s: no command has the flag %s", p.path, span)
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d commands found", n)
	}
}

// commands returns the simple commands of a block, each as its words; in a console these follow "$
// ".
func commands(b block) (list [][]string) {
	text := strings.ReplaceAll(b.text, "\\\n", " ")
	for line := range strings.Lines(text) {
		if b.language == "console" {
			var ok bool
			if line, ok = strings.CutPrefix(line, "$ "); !ok {
				continue
			}
		}
		list = append(list, simple(split(line))...)
	}
	return list
}

// split splits like a shell: quotes keep words together, and # begins a comment.
func split(line string) (words []string) {
	word, quote, in := "", rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '"' || r == '\'':
			quote, in = r, true
		case r == ' ' || r == '\n' || r == '\t':
			if in || word != "" {
				words = append(words, word)
			}
			word, in = "", false
		case r == '#' && word == "":
			return words
		default:
			word += string(r)
		}
	}
	if in || word != "" {
		words = append(words, word)
	}
	return words
}

// simple splits a line at operators between commands, and drops leading assignments and trailing
// redirections.
func simple(words []string) (list [][]string) {
	var now []string
	end := func() {
		if len(now) > 0 {
			list = append(list, now)
		}
		now = nil
	}
	skip := false
	for _, w := range words {
		switch {
		case skip:
			skip = false
		case w == "|" || w == "&&" || w == "&" || w == ";":
			end()
		case w == ">" || w == "<" || w == ">>":
			skip = true
		case strings.HasPrefix(w, ">") || strings.HasPrefix(w, "<"):
		case len(now) == 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(w):
		default:
			now = append(now, w)
		}
	}
	end()
	return list
}

// wrong returns what is wrong with a command; "" = nothing.
func wrong(t *testing.T, words []string) string {
	name, args := words[0], words[1:]
	switch {
	case name == "peer" || name == "./peer":
		return wrongPeer(t, args)
	case name == "go" && len(args) > 1:
		return wrongGo(t, args[0], args[1:])
	case strings.HasPrefix(name, ".ci/"):
		return wrongGate(t, name, args)
	case !slices.Contains(others, name):
		return "not known here"
	}
	return ""
}

func wrongPeer(t *testing.T, args []string) string {
	var g grammar
	p, _, err := newParser(&g, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var parsed *kong.Context
	func() {
		defer func() { recover() }() // of leave, for --help
		parsed, err = p.Parse(args)
	}()
	if err != nil {
		return err.Error()
	}
	if parsed != nil && args[0] == "run" && !slices.Contains(args, "--config") && !slices.Contains(args, "--tls-cert") {
		return wrongSettings(t, args[1:])
	}
	return ""
}

// wrongSettings has the program check the values of the flags of run.
func wrongSettings(t *testing.T, args []string) string {
	args = append([]string{"validate", "--advertise", "cache"}, args...)
	if i := slices.Index(args, "--secret-file"); i >= 0 {
		args[i+1] = write(t, "secret", "0123456789abcdef")
	}
	if i := slices.Index(args, "--store"); i >= 0 { // whatever this machine has there
		args[i+1] = filepath.Join(t.TempDir(), filepath.Base(args[i+1]))
	}
	if code, _, stderr := call(t, args...); code != 0 {
		return stderr
	}
	return ""
}

// flagsOf returns the flags of a command of peer.
func flagsOf(t *testing.T, command string) []*kong.Flag {
	var g grammar
	p, _, err := newParser(&g, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range p.Model.Children {
		if n.Name == command {
			return n.Flags
		}
	}
	t.Fatalf("no command %s", command)
	return nil
}

// simHelp returns the help of sim about its experiments, by name; "" = about all of them.
var simHelp = sync.OnceValue(func() map[string]string {
	dir, err := os.MkdirTemp("", "sim")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ask := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			panic(fmt.Sprintf("%s %q: %v\n%s", name, args, err, out))
		}
		return string(out)
	}
	sim := filepath.Join(dir, "sim")
	ask("go", "build", "-o", sim, root+"/sim")
	help := map[string]string{"": ask(sim, "--help")}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+)  `).FindAllStringSubmatch(help[""], -1) {
		help[m[1]] = help[""] + ask(sim, "help", m[1])
	}
	return help
})

// anyFlag returns the flags of all commands of peer and of sim.
func anyFlag(t *testing.T) map[string]bool {
	names := map[string]bool{"help": true}
	var g grammar
	p, _, err := newParser(&g, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range p.Model.Children {
		for _, f := range n.Flags {
			names[f.Name] = true
		}
	}
	for _, help := range simHelp() {
		for _, m := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(help, -1) {
			names[m[1]] = true
		}
	}
	return names
}

func wrongGo(t *testing.T, verb string, args []string) string {
	i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "./") || a == "." })
	if i < 0 {
		return "" // a package of others
	}
	dir := filepath.Join(root, strings.TrimSuffix(args[i], "..."))
	if _, err := os.Stat(dir); err != nil {
		return err.Error()
	}
	rest := args[i+1:]
	switch {
	case verb == "run" && args[i] == "./cmd/peer" && len(rest) > 0:
		return wrongPeer(t, rest)
	case verb == "run" && args[i] == "./sim" && len(rest) > 0:
		return wrongSim(rest)
	case verb == "test":
		return wrongTest(t, dir, strings.HasSuffix(args[i], "..."), append(slices.Clone(args[:i]), rest...))
	case !slices.Contains([]string{"run", "build", "vet", "test", "doc", "install"}, verb):
		return "go has no " + verb
	}
	return ""
}

func wrongSim(args []string) string {
	name := args[0]
	if strings.HasPrefix(name, "-") || name == "NAME" {
		name = ""
	}
	help, ok := simHelp()[name]
	if !ok {
		return "sim has no experiment " + name
	}
	for _, a := range args {
		if flag, _, _ := strings.Cut(a, "="); strings.HasPrefix(a, "--") && !strings.Contains(help, flag) {
			return "sim has no flag " + a
		}
	}
	return ""
}

// goTestFlags are the flags of go test that take a value.
var goTestFlags = []string{"run", "bench", "fuzz", "fuzztime", "count", "timeout", "benchtime", "cpu"}

func wrongTest(t *testing.T, dir string, below bool, args []string) string {
	if below {
		return ""
	}
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		name, value, has := strings.Cut(name, "=")
		if !isFlag || !slices.Contains(goTestFlags, name) {
			continue
		}
		if !has && i+1 < len(args) {
			i++
			value = args[i]
		}
		if (name == "run" || name == "bench" || name == "fuzz") && !names(t, dir, value) {
			return "nothing is called " + value
		}
	}
	return ""
}

// names reports whether a pattern matches the name of a test, benchmark, fuzz
// target or example of the package.
func names(t *testing.T, dir, pattern string) bool {
	top, _, _ := strings.Cut(pattern, "/")
	re, err := regexp.Compile(top)
	if err != nil {
		return false
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for name := range functions(f) {
			if pattern == "^$" || re.MatchString(name) && regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`).MatchString(name) {
				return true
			}
		}
	}
	return false
}

// wrongGate checks the steps given to .ci/run.
func wrongGate(t *testing.T, name string, args []string) string {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return err.Error()
	}
	for _, step := range args {
		if name == ".ci/run" && !strings.Contains(string(text), "\nstep_"+step+"()") {
			return "no step " + step
		}
	}
	return ""
}
