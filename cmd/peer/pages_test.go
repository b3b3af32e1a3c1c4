package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The pages of the repository are for people; what can be checked in them is
// checked here, the same way on every page: links, commands and their flags,
// outputs, metrics, variables and log lines.

const root = "../.."

// A page is a parsed Markdown file.
type page struct {
	path   string // from the repository's root
	text   string
	blocks []block
	prose  string // all but the blocks
}

// A block is fenced code; language is the word after the fence.
type block struct {
	language string
	line     int
	text     string
}

// pages returns all pages of the repository.
func pages(t *testing.T) (list []page) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case !d.IsDir() && filepath.Ext(path) == ".md":
			list = append(list, readPage(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Fatalf("only %d pages found", len(list))
	}
	return list
}

func pageOf(t *testing.T, name string) page {
	t.Helper()
	for _, p := range pages(t) {
		if p.path == name {
			return p
		}
	}
	t.Fatalf("no page %s", name)
	return page{}
}

func readPage(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	p := page{path: filepath.ToSlash(rel), text: string(text)}
	var in *block
	n := 0
	for line := range strings.Lines(p.text) {
		n++
		switch fence, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case ok && in == nil:
			in = &block{language: fence, line: n + 1}
		case ok:
			p.blocks = append(p.blocks, *in)
			in = nil
		case in != nil:
			in.text += line
		default:
			p.prose += line
		}
	}
	if in != nil {
		t.Errorf("%s:%d: the block does not end", p.path, in.line)
	}
	return p
}

var codeSpan = regexp.MustCompile("`([^`\n]+)`")

// code returns the page's inline code spans. In tables a bar is escaped in them.
func (p page) code() (spans []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(p.prose, -1) {
		spans = append(spans, strings.ReplaceAll(m[1], `\|`, "|"))
	}
	return spans
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notASlug = regexp.MustCompile(`[^a-z0-9 _-]`)
	filename = regexp.MustCompile(`^[\w./-]+\.(md|json|ya?ml|service|sh)$`)
)

// slug returns the anchor of a heading.
func slug(heading string) string {
	return strings.ReplaceAll(notASlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// The targets of all links, and all named files, exist.
func TestPagesLinks(t *testing.T) {
	for _, p := range pages(t) {
		dir := filepath.Join(root, filepath.Dir(p.path))
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(p.prose, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, fragment, _ := strings.Cut(m[1], "#")
			target := filepath.Join(dir, file)
			if file == "" {
				target = filepath.Join(root, p.path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", p.path, m[1], err)
				continue
			}
			if fragment != "" && !hasHeading(t, target, fragment) {
				t.Errorf("%s links to %s: no such heading", p.path, m[1])
			}
		}
		for _, span := range p.code() {
			if !filename.MatchString(span) || strings.HasPrefix(span, "/") || strings.HasSuffix(span, "peer.yaml") {
				continue
			}
			_, here := os.Stat(filepath.Join(dir, span))
			_, there := os.Stat(filepath.Join(root, span))
			if here != nil && there != nil {
				t.Errorf("%s names %s, which is not there", p.path, span)
			}
		}
	}
}

func hasHeading(t *testing.T, file, fragment string) bool {
	t.Helper()
	for _, m := range heading.FindAllStringSubmatch(readPage(t, file).prose, -1) {
		if slug(m[1]) == fragment {
			return true
		}
	}
	return false
}

// Metrics and variables on the pages are those of the program, and log messages are in its code.
func TestPagesNames(t *testing.T) {
	metrics := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(pageOf(t, "cmd/peer/METRICS.md").text, -1) {
		metrics[m[1]] = true
	}
	variables := make(map[string]bool)
	for _, f := range flagsOf(t, "run") {
		for _, name := range f.Envs {
			variables[name] = true
		}
	}
	if len(metrics) < 30 || len(variables) < 15 {
		t.Fatalf("%d metrics and %d variables known", len(metrics), len(variables))
	}
	source := sources(t)
	metric := regexp.MustCompile(`\bpeer_[a-z_]+\*?`)
	variable := regexp.MustCompile(`\bPEER_[A-Z_]+\*?`)
	message := regexp.MustCompile(`msg=("[^"]*")`)
	for _, p := range pages(t) {
		for _, name := range metric.FindAllString(p.text, -1) {
			if !known(metrics, name) {
				t.Errorf("%s: no metric %s", p.path, name)
			}
		}
		for _, name := range variable.FindAllString(p.text, -1) {
			if !known(variables, name) {
				t.Errorf("%s: no variable %s", p.path, name)
			}
		}
		for _, m := range message.FindAllStringSubmatch(p.text, -1) {
			if !strings.Contains(source, m[1]) {
				t.Errorf("%s: nothing logs %s", p.path, m[1])
			}
		}
	}
}

// known reports whether a name exists or, if it ends in *, a name with that beginning.
func known(names map[string]bool, name string) bool {
	prefix, open := strings.CutSuffix(name, "*")
	if !open {
		return names[strings.TrimSuffix(name, "_bucket")]
	}
	for n := range names {
		if strings.HasPrefix(n, prefix) {
			return true
		}
	}
	return false
}

// sources returns the code of the peer and of this module's packages that it uses, without tests.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"cmd", "gossip", "digest", "arith"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
