package node

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/summarycache/summarycache/gossip/limitlog"
)

// A logLine is a call in the code that writes a line of the log.
type logLine struct {
	at      string
	level   slog.Level
	message string   // "" = not a constant
	keys    []string // of its values, as far as they are constants
}

// oneOfFew has the files that write messages which are not constants, and why these are few.
var oneOfFew = map[string]string{
	"gossip/ask.go":           "a keeper names peers wrongly, or nobody",
	"gossip/accept.go":        "callers of refuse give one of two constants",
	"gossip/loop.go":          "the table of events has constants",
	"gossip/member_events.go": "a peer is here, is gone or has left",
	"gossip/server.go":        `"malformed request" or "malformed hello"`,
}

// Every line of the log that the code of a peer can write has a bounded length, however large its
// values, and a bounded number, however often and with whatever values its cause comes about.
func TestEveryLineIsBounded(t *testing.T) {
	lines := logLines(t)
	if len(lines) < 60 {
		t.Fatalf("only %d lines are found in the code", len(lines))
	}
	huge := strings.Repeat("v", 64<<10)
	for _, l := range lines {
		if l.message == "" {
			if oneOfFew[l.at[:strings.Index(l.at, ":")]] == "" {
				t.Errorf("%s: the message is not a constant, so that its lines have no common cause", l.at)
			}
			l.message = "one of few"
		}
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			n := assemble(Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
			args := []any{"first", ""}
			for _, k := range l.keys {
				args = append(args, k, huge)
			}
			for i := range 100 {
				args[1] = fmt.Sprint(i, huge)
				n.log.Log(t.Context(), max(l.level, slog.LevelInfo), l.message, args...)
			}
			most := limitlog.OfMessage * (len(l.keys) + 2) * (limitlog.MaxValue + 64)
			if got := strings.Count(out.String(), "\n"); got != limitlog.OfMessage || out.Len() > most {
				t.Errorf("%s: %q 100 times: %d lines, %d bytes; want %d lines, at most %d bytes", l.at, l.message, got, out.Len(), limitlog.OfMessage, most)
			}
			if kept := n.Events(); len(kept) != limitlog.OfMessage || len(kept[0].Text) > most/limitlog.OfMessage {
				t.Errorf("%s: %d events are kept, the last of %d bytes", l.at, len(kept), len(kept[0].Text))
			}
		})
	}
}

var logLevels = map[string]slog.Level{"Debug": slog.LevelDebug, "Info": slog.LevelInfo, "Warn": slog.LevelWarn, "Error": slog.LevelError, "Log": slog.LevelInfo, "LogAttrs": slog.LevelInfo}

// logLines returns the calls of loggers in gossip and in the peer.
func logLines(t *testing.T) (lines []logLine) {
	root := filepath.Join("..", "..", "..", "..")
	for _, dir := range []string{"gossip", "cmd/peer"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(root, path)
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "gossip/limitlog/") || strings.Contains(name, "/examples/") {
				return err
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := lineOf(n); ok {
					l.at = fmt.Sprint(filepath.ToSlash(name), ":", files.Position(n.Pos()).Line)
					lines = append(lines, l)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// lineOf returns the line that a node of the syntax tree writes, if it is a call of a logger.
func lineOf(n ast.Node) (l logLine, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return l, false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return l, false
	}
	of := ""
	switch x := method.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	}
	l.level, ok = logLevels[method.Sel.Name]
	if !ok || !strings.EqualFold(of, "log") && !strings.EqualFold(of, "logger") {
		return l, false
	}
	args := call.Args
	if strings.HasPrefix(method.Sel.Name, "Log") {
		args = args[2:] // without the context and the level
	}
	l.message = constant(args[0])
	for _, a := range args[1:] {
		if key := constant(a); key != "" {
			l.keys = append(l.keys, key)
		}
	}
	return l, true
}

// constant returns the value of a literal; "" if e is none.
func constant(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	return ""
}
