package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const maxFile = 1 << 20 // bytes of a configuration file

// An entry is one key of a configuration file.
type entry struct {
	values []string
	list   bool
	line   int
	items  []section // of a list of sections, in place of values
}

// A section is one item of a list in a file that has keys of its own.
type section struct {
	entries map[string]entry
	line    int
}

// sections are the keys that take a list of them, with the keys that these have.
var sections = map[string]map[string]bool{"rules": ruleKeys, "sites": siteKeys}

// readFile reads the settings in a YAML file. names are the keys it may have;
// those that take a list are mapped to true. It returns what it could read
// beside every mistake it found.
func readFile(path string, names map[string]bool) (map[string]entry, []error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, []error{fmt.Errorf("--config: %w", err)}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, []error{fmt.Errorf("--config: %w", err)}
	}
	if len(data) > maxFile {
		return nil, []error{fmt.Errorf("%s: a configuration of more than %d bytes", path, maxFile)}
	}
	return parseFile(path, data, names)
}

func parseFile(path string, data []byte, names map[string]bool) (map[string]entry, []error) {
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, []error{syntaxError(path, err)}
	}
	pairs, err := topLevel(path, tree)
	if err != nil {
		return nil, []error{err}
	}
	return mapping(path, pairs, names)
}

// mapping reads pairs whose keys may be names.
func mapping(path string, pairs []*ast.MappingValueNode, names map[string]bool) (map[string]entry, []error) {
	entries := make(map[string]entry)
	var errs []error
	known := make([]string, 0, len(names))
	for name := range names {
		known = append(known, name)
	}
	for _, pair := range pairs {
		key, line := pair.Key.GetToken().Value, pair.Key.GetToken().Position.Line
		list, ok := names[key]
		if keys := sections[key]; ok && keys != nil {
			items, mistakes := listOf(path, key, line, pair.Value, keys)
			errs = append(errs, mistakes...)
			entries[key] = entry{line: line, items: items}
			continue
		}
		if !ok {
			errs = append(errs, unknownKey(path, line, key, known))
			continue
		}
		e, err := scalars(pair.Value, list)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s %w", path, line, key, err))
			continue
		}
		e.line = line
		entries[key] = e
	}
	return entries, errs
}

// listOf reads a list of sections.
func listOf(path, key string, line int, node ast.Node, keys map[string]bool) (items []section, errs []error) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		return nil, []error{fmt.Errorf("%s:%d: %s wants a list of items that begin with a dash", path, line, key)}
	}
	for _, item := range seq.Values {
		at := item.GetToken().Position.Line
		var pairs []*ast.MappingValueNode
		switch node := item.(type) {
		case *ast.MappingNode:
			pairs = node.Values
		case *ast.MappingValueNode:
			pairs = []*ast.MappingValueNode{node}
		default:
			errs = append(errs, fmt.Errorf("%s:%d: an item of %s wants lines of the form key: value", path, at, key))
			continue
		}
		entries, mistakes := mapping(path, pairs, keys)
		errs = append(errs, mistakes...)
		items = append(items, section{entries, pairs[0].Key.GetToken().Position.Line})
	}
	return items, errs
}

func unknownKey(path string, line int, key string, known []string) error {
	err := fmt.Errorf("%s:%d: unknown key %q", path, line, key)
	if near := Nearest(strings.ToLower(strings.ReplaceAll(key, "_", "-")), known); near != "" {
		err = fmt.Errorf("%w, did you mean %q?", err, near)
	}
	return err
}

// topLevel returns the pairs of the one mapping that a file must be.
func topLevel(path string, tree *ast.File) ([]*ast.MappingValueNode, error) {
	var pairs []*ast.MappingValueNode
	for i, doc := range tree.Docs {
		if i > 0 && doc.Body != nil {
			return nil, fmt.Errorf("%s:%d: a second document begins here; a configuration is one", path, doc.Body.GetToken().Position.Line)
		}
		switch body := doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.NullNode:
		case *ast.MappingNode:
			pairs = body.Values
		case *ast.MappingValueNode:
			pairs = []*ast.MappingValueNode{body}
		default:
			return nil, fmt.Errorf("%s:%d: want lines of the form key: value", path, body.GetToken().Position.Line)
		}
	}
	return pairs, nil
}

// scalars returns the text of a value: one scalar or, where a list may stand,
// several.
func scalars(node ast.Node, list bool) (entry, error) {
	if seq, ok := node.(*ast.SequenceNode); ok {
		if !list {
			return entry{}, errors.New("takes one value, not a list")
		}
		e := entry{list: true}
		for _, item := range seq.Values {
			text, err := scalar(item)
			if err != nil {
				return entry{}, err
			}
			e.values = append(e.values, text)
		}
		return e, nil
	}
	text, err := scalar(node)
	return entry{values: []string{text}}, err
}

func scalar(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, nil
	case nil, *ast.NullNode:
		return "", errors.New("has no value")
	}
	return "", errors.New("must be plain text or a number")
}

func syntaxError(path string, err error) error {
	var positioned interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &positioned) && positioned.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", path, positioned.GetToken().Position.Line, printable(positioned.GetMessage()))
	}
	return fmt.Errorf("%s: %s", path, printable(yaml.FormatError(err, false, false)))
}

// printable escapes what would move a terminal's cursor: the parser's messages
// repeat characters of the file.
func printable(message string) string {
	var b strings.Builder
	for _, r := range message {
		if unicode.IsControl(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
