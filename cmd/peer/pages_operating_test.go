package main

import (
	"go/ast"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

const operating = "cmd/peer/OPERATING.md"

// functions returns the names of the functions in a file.
func functions(f *ast.File) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && !yield(fn.Name.Name) {
				return
			}
		}
	}
}

// Consoles on the pages show what the program prints. "…" matches anything.
func TestPagesConsoles(t *testing.T) {
	var cluster started
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "console" {
				continue
			}
			for _, part := range strings.Split("\n"+b.text, "\n$ ")[1:] {
				line, want, _ := strings.Cut(part, "\n")
				args := split(line)[1:]
				if args[0] == "members" || args[0] == "status" {
					if cluster.admin == "" {
						cluster = namedPair(t)
					}
					args = append(args, "--admin", cluster.admin)
				}
				n++
				code, got, stderr := call(t, args...)
				for range 100 { // on a busy machine a peer says for some seconds that it is degraded, which no page shows
					if !strings.Contains(got, "machine: this process runs") {
						break
					}
					time.Sleep(100 * time.Millisecond)
					code, got, stderr = call(t, args...)
				}
				if code != 0 || !matches(got, want) {
					t.Errorf("%s:%d: %s = %d, prints\n%s%s\nand not\n%s", p.path, b.line, line, code, got, stderr, want)
				}
			}
		}
	}
	if n < 2 {
		t.Errorf("only %d consoles found", n)
	}
}

// namedPair starts a cluster of cache-1 and cache-2, and returns the first.
func namedPair(t *testing.T) started {
	secret := write(t, "secret", "0123456789abcdef0123456789abcdef")
	a := inProcess(t, local(t, "cache-1", "--secret-file", secret))
	inProcess(t, local(t, "cache-2", "--join", a.gossip, "--secret-file", secret))
	eventually(t, time.Minute, "the peers know each other", func() bool {
		s, err := admin.Client(a.admin).Status(t.Context())
		return err == nil && len(s.Members) == 1 && s.Members[0].Current
	})
	return a
}

// matches compares word by word, so that column widths do not matter.
func matches(got, want string) bool {
	pattern := regexp.QuoteMeta(strings.Join(strings.Fields(want), " "))
	pattern = strings.ReplaceAll(pattern, "… ", `(\S+ )*?`)
	pattern = strings.ReplaceAll(pattern, " …", `( \S+)*?`)
	return regexp.MustCompile("^" + pattern + "$").MatchString(strings.Join(strings.Fields(got), " "))
}

// The table with the cost of a cluster has plan's results for each row.
func TestOperatingSizes(t *testing.T) {
	p := pageOf(t, operating)
	m := regexp.MustCompile("from `(peer plan [^`]*)`").FindStringSubmatch(p.prose)
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (\S+ \S+) \| (\S+ \S+) \| ([\d.]+) \|$`).FindAllStringSubmatch(p.prose, -1)
	if m == nil || len(rows) < 3 {
		t.Fatalf("the page has no table of sizes: %d rows", len(rows))
	}
	for _, row := range rows {
		got := words(t, 0, append(split(m[1])[1:], "--peers", row[1])...)
		holds(t, got, "received "+row[2]+" ", "memory "+row[3]+" ", "false candidates "+row[4]+" ")
	}
	m = regexp.MustCompile("`(peer plan --objects 100000 [^`]*)` says").FindStringSubmatch(p.prose)
	if m == nil {
		t.Fatal("the page has no plan for the measured cluster")
	}
	holds(t, words(t, 0, split(m[1])[1:]...), "received 13.0 KiB/s ")
}

// Every path of the page is served on the admin port.
func TestOperatingPaths(t *testing.T) {
	args := append(local(t, "a"), "--profiles", "on")
	a := inProcess(t, args)
	n := 0
	for _, span := range pageOf(t, operating).code() {
		if !regexp.MustCompile(`^/[a-z./]*$`).MatchString(span) {
			continue
		}
		n++
		r, err := http.Get("http://" + a.admin + span)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s = %s", span, r.Status)
		}
	}
	if n < 8 {
		t.Errorf("only %d paths found", n)
	}
}

// Peers accept the certificates that the page makes.
func TestOperatingCertificates(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not here, so the page's lines are not run")
	}
	var lines [][]string
	for _, b := range pageOf(t, operating).blocks {
		if strings.Contains(b.text, "openssl ") {
			lines = append(lines, commands(b)...)
		}
	}
	if len(lines) < 5 {
		t.Fatalf("only %d commands found", len(lines))
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, line := range lines {
		if line[0] == "peer" {
			words(t, 0, append(line[1:], "--store", filepath.Join(dir, "store"))...)
		} else if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", line, err, out)
		}
	}
}

// A peer accepts the secret that the page makes, and only its owner can read the file.
func TestOperatingSecret(t *testing.T) {
	if _, err := exec.LookPath("install"); err != nil {
		t.Skip("coreutils are not here, so the page's line is not run")
	}
	_, line, _ := strings.Cut(pageOf(t, operating).text, "## More nodes")
	_, line, _ = strings.Cut(line, "```sh\n")
	line, _, _ = strings.Cut(line, "\n")
	dir := filepath.Join(t.TempDir(), "new")
	if out, err := exec.Command("sh", "-c", strings.ReplaceAll(line, "/etc/peer", dir)).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	file := filepath.Join(dir, "secret")
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", line, st, err)
	}
	words(t, 0, "validate", "--secret-file", file, "--store", filepath.Join(dir, "store"))
}
