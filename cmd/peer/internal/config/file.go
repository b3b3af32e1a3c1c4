package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/summarycache/summarycache/cmd/peer/internal/file"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

const maxFile = 1 << 20 // bytes of a configuration file

// An entry is one key of a configuration file.
type entry struct {
	values []string
	list   bool
	line   int
	node   ast.Node  // of the value
	items  []section // of a list of sections, instead of values
}

// place returns where a place in the text of the value is in the file, as LINE:COLUMN. For a text that the file folds
// into several lines it is the line of the key.
func (e *entry) place(at *rules.PlaceError) string {
	switch n := e.node.(type) {
	case *ast.LiteralNode:
		if block := n.Value.Token.Origin; n.Start.Value == "|" {
			return fmt.Sprintf("%d:%d", n.Start.Position.Line+at.Line, len(block)-len(strings.TrimLeft(block, " "))+
				at.Column)
		}
	case *ast.StringNode:
		raw := strings.TrimSpace(n.Token.Origin)
		if strings.Contains(raw, "\n") {
			break
		}
		column := n.Token.Position.Column
		if q := raw[0]; q == '\'' || q == '"' {
			for i := range raw[1:] { // what stands for one character has two
				if i++; i >= at.Column {
					break
				}
				if two := raw[i:min(i+2, len(raw))]; q == '\'' && two == "''" || q == '"' && two[0] == '\\' {
					raw = raw[:i] + raw[i+1:]
					column++
				}
			}
			column++
		}
		return fmt.Sprintf("%d:%d", n.Token.Position.Line, column+at.Column-1)
	}
	return fmt.Sprintf("%d", e.line)
}

// A section is one item of a list in a file that has keys of its own.
type section struct {
	entries map[string]entry
	keys    []string // in the order of the file
	line    int
}

// names are the keys that a mapping may have. The value says whether a key takes a list.
type names map[string]bool

// sections are the keys that take a list of sections, with the keys of such a section.
var sections = map[string]names{"rules": namesOf(reflect.TypeFor[rules.Rule]()),
	"sites": namesOf(reflect.TypeFor[site]())}

// namesOf returns the keys of a struct, which are the name tags of its fields.
func namesOf(t reflect.Type) names {
	n := make(names)
	for field := range t.Fields() {
		if name := field.Tag.Get("name"); name != "" {
			n[name] = field.Type.Kind() == reflect.Slice
		}
	}
	return n
}

// fill sets the fields of a struct that item has keys for.
func (c *checker) fill(item section, into any) {
	for field, value := range reflect.ValueOf(into).Elem().Fields() {
		key := field.Tag.Get("name")
		if e, ok := item.entries[key]; ok && key != "" {
			for _, m := range set(value, field.Tag, e.values) {
				if m.at != nil {
					m.Where = fmt.Sprintf("%s:%s: %s", c.File, e.place(m.at), key)
					c.errs = append(c.errs, &m)
					continue
				}
				c.failKey(item, key, m.Value, errors.New(m.Reason))
			}
		}
	}
}

// failKey adds a mistake in the value of a section's key, or that the key is missing.
func (c *checker) failKey(item section, key, value string, err error) {
	line := cmp.Or(item.entries[key].line, item.line)
	c.errs = append(c.errs, &mistake{fmt.Sprintf("%s:%d: %s", c.File, line, key), value, err.Error(), nil})
}

// readFile reads the settings in a YAML file. It returns the readable ones together with all
// mistakes.
func readFile(path string, flags []*kong.Flag) (map[string]entry, []error) {
	data, err := file.Text(path, maxFile)
	if err != nil {
		return nil, []error{fmt.Errorf("--config: %w", err)}
	}
	known := names{"rules": true, "sites": true}
	for _, flag := range flags {
		if flag.Name != "config" {
			known[flag.Name] = flag.IsSlice()
		}
	}
	return parseFile(path, data, known)
}

func parseFile(path string, data []byte, known names) (map[string]entry, []error) {
	tokens := lexer.Tokenize(string(data))
	if err := deep(path, tokens, known); err != nil {
		return nil, []error{err}
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, []error{syntaxError(path, err)}
	}
	var pairs []*ast.MappingValueNode
	for i, doc := range tree.Docs {
		if i > 0 && doc.Body != nil {
			return nil, []error{fmt.Errorf("%s:%d: a second document begins here; a configuration is one", path,
				lineOf(doc.Body))}
		}
		var ok bool
		if pairs, ok = pairsOf(doc.Body); !ok {
			return nil, []error{fmt.Errorf("%s:%d: want lines of the form key: value", path, lineOf(doc.Body))}
		}
	}
	whole, errs := mapping(path, pairs, known)
	return whole.entries, errs
}

// deepest is how many brackets may be open, dashes stand in a line, and keys be unknown: the parser takes a time that
// is quadratic in them.
const deepest = 100

// deep returns an error for a file that would take long to parse.
func deep(path string, tokens token.Tokens, known names) error {
	open, dashes, unknown := 0, 0, 0
	for _, t := range tokens {
		next := 0
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open++
		case token.SequenceEndType, token.MappingEndType:
			open--
		case token.SequenceEntryType:
			next = dashes + 1
		case token.MappingValueType:
			if t.Prev == nil { // the file begins with a colon
				unknown++
			} else if _, ok := known[t.Prev.Value]; !ok && !inSection(t.Prev.Value) {
				unknown++
			}
		}
		dashes = next
		for _, of := range []struct {
			n    int
			what string
		}{{open, "brackets are open"}, {dashes, "dashes in a line"}, {unknown, "keys that are not known"}} {
			if of.n > deepest {
				return fmt.Errorf("%s:%d: more than %d %s", path, t.Position.Line, deepest, of.what)
			}
		}
	}
	return nil
}

func inSection(key string) (yes bool) {
	for _, keys := range sections {
		_, ok := keys[key]
		yes = yes || ok
	}
	return yes
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

// pairsOf returns the pairs of a mapping. An empty node is an empty mapping.
func pairsOf(n ast.Node) (pairs []*ast.MappingValueNode, ok bool) {
	switch n := n.(type) {
	case nil, *ast.CommentGroupNode, *ast.NullNode:
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = append(pairs, n)
	default:
		return nil, false
	}
	return pairs, true
}

// mapping reads pairs, and refuses keys that are not known.
func mapping(path string, pairs []*ast.MappingValueNode, known names) (s section, errs []error) {
	s.entries = make(map[string]entry)
	for _, pair := range pairs {
		key, line := pair.Key.GetToken().Value, lineOf(pair.Key)
		list, ok := known[key]
		if !ok {
			keys := slices.Sorted(maps.Keys(known))
			near := didYouMean(strings.ReplaceAll(key, "_", "-"), keys)
			if near == "" && len(keys) < 40 { // a site's or a rule's
				near = ", want one of " + strings.Join(keys, ", ")
			}
			errs = append(errs, fmt.Errorf("%s:%d: unknown key %q%s", path, line, key, near))
			continue
		}
		e := entry{line: line, node: pair.Value}
		if keys := sections[key]; keys != nil {
			var mistakes []error
			e.items, mistakes = listOf(path, key, line, pair.Value, keys)
			errs = append(errs, mistakes...)
		} else if err := e.scalars(pair.Value, list); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s %w", path, line, key, err))
			continue
		}
		s.entries[key] = e
		s.keys = append(s.keys, key)
	}
	return s, errs
}

// listOf reads a list of sections.
func listOf(path, key string, line int, node ast.Node, known names) (items []section, errs []error) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		return nil, []error{fmt.Errorf("%s:%d: %s wants a list of items that begin with a dash", path, line, key)}
	}
	if key == "sites" && len(seq.Values) == 0 {
		errs = append(errs, fmt.Errorf("%s:%d: sites is empty: leave it out for a forward proxy", path, line))
	}
	for _, item := range seq.Values {
		pairs, _ := pairsOf(item)
		if len(pairs) == 0 {
			errs = append(errs, fmt.Errorf("%s:%d: an item of %s wants lines of the form key: value", path,
				lineOf(item), key))
			continue
		}
		s, mistakes := mapping(path, pairs, known)
		s.line = lineOf(pairs[0].Key)
		items, errs = append(items, s), append(errs, mistakes...)
	}
	return items, errs
}

// scalars reads the text of a value: one scalar or, for a key that takes a list, several.
func (e *entry) scalars(node ast.Node, list bool) error {
	nodes := []ast.Node{node}
	if seq, ok := node.(*ast.SequenceNode); ok {
		if !list {
			return errors.New("takes one value, not a list")
		}
		nodes, e.list = seq.Values, true
	}
	for _, n := range nodes {
		text, err := scalar(n)
		if err != nil {
			return err
		}
		e.values = append(e.values, text)
	}
	return nil
}

func scalar(node ast.Node) (string, error) {
	switch n := node.(type) {
	case nil, *ast.NullNode:
		return "", errors.New("has no value")
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, nil
	}
	return "", errors.New("must be plain text or a number")
}

func syntaxError(path string, err error) error {
	var positioned interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &positioned) && positioned.GetToken() != nil {
		message := positioned.GetMessage()
		if strings.Contains(message, "'\t'") {
			message = "there is a tab: indent with spaces"
		}
		return fmt.Errorf("%s:%d: %s", path, positioned.GetToken().Position.Line, printable(message))
	}
	return fmt.Errorf("%s: %s", path, printable(yaml.FormatError(err, false, false)))
}

// printable replaces control characters, which a terminal would obey. The parser's messages
// quote characters of the file.
func printable(message string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, message)
}
