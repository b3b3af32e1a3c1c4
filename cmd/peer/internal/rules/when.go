package rules

import (
	"cmp"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A When is a condition, or a text, over a request and its answer: an expression of github.com/expr-lang/expr without
// functions, checked when it is parsed. Its cost is bounded by the length of the expression times that of the request.
//
// It is evaluated in Kleene's logic of three values, since some things are not known: which path an ambiguous path is,
// which of two parameters with one name counts, the client of a lookup, an answer before it has come. What compares
// them is neither true nor false, and stays so whatever is negated. What is not known counts for settings that
// restrict, and for no others. nil is true.
type When struct {
	Text string
	Uses []string // variables, as "path", and members of them, as "header.Accept" and "cookie.lang", in their order

	condition func(facts) truth
	text      func(facts) (string, bool)
}

// A truth is a value of Kleene's logic: "and" is the least of two, "or" the greatest, and "not" what is missing to yes.
type truth int8

const (
	no truth = iota
	maybe
	yes
)

func truthOf(holds, known bool) truth {
	switch {
	case !known:
		return maybe
	case holds:
		return yes
	}
	return no
}

// facts are what conditions are about. They are small, and passed by value, so that they need no memory.
type facts struct {
	q         *http.Request
	client    netip.Addr // the zero address = unknown
	ambiguous bool       // q's path
	status    int        // of the answer; 0 = there is none yet
	h         http.Header
	partly    bool // h is that of a 304, which says little about the stored answer
}

func (f facts) answered() bool { return f.status != 0 && !f.partly }

// variables are the names in expressions, with their types.
var variables = map[string]any{"method": "", "scheme": "", "host": "", "path": "", "client": "", "type": "",
	"outcome": "", "status": 0, "length": 0,
	"query": map[string]string{}, "header": map[string]string{}, "cookie": map[string]string{},
	"answer": map[string]string{}}

var texts = map[string]func(facts) (string, bool){
	"method": func(f facts) (string, bool) { return f.q.Method, true },
	"scheme": func(f facts) (string, bool) { return f.q.URL.Scheme, true },
	"host":   func(f facts) (string, bool) { return withoutPort(f.q.URL.Host), true },
	"path":   func(f facts) (string, bool) { return f.q.URL.Path, !f.ambiguous },
	"type":   func(f facts) (string, bool) { return mediaType(f.h), f.answered() },
	// outcome is hit, stale, miss, or another reason for which the request was forwarded, as in Cache-Status.
	"outcome": func(f facts) (string, bool) {
		st, ok := rfc9111.LastStatus(f.h)
		switch {
		case st.Hit && st.HasTTL && st.TTL <= 0:
			return "stale", ok
		case st.Hit:
			return "hit", ok
		}
		return strings.TrimPrefix(strings.TrimPrefix(cmp.Or(st.Fwd, st.Detail), "uri-"), "vary-"), ok
	},
}

var numbers = map[string]func(facts) (int, bool){
	"status": func(f facts) (int, bool) { return f.status, f.status != 0 },
	"length": func(f facts) (int, bool) {
		n, err := strconv.Atoi(f.h.Get("Content-Length"))
		return n, err == nil && f.answered()
	},
}

var (
	compares = map[string]func(int) bool{
		"==": func(c int) bool { return c == 0 }, "!=": func(c int) bool { return c != 0 }, "<": func(c int) bool { return c < 0 },
		"<=": func(c int) bool { return c <= 0 }, ">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	}
	relates = map[string]func(a, b string) bool{"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix}
)

// shapes are what variables can be equal to, and begin with if they are paths; other constants would never match.
var shapes = map[string]struct {
	re   *regexp.Regexp
	want string
}{
	"method": {regexp.MustCompile(`^[^a-z ]*$`), "a method in upper case"},
	"scheme": {regexp.MustCompile(`^https?$`), "http or https"},
	"host": {regexp.MustCompile(`^(\[.*\]|[!-.0-9;-@[-~]*)$`),
		"a host as requests have it: in lower case, in ASCII, without a port"},
	"path": {regexp.MustCompile(`^[/*][^?#%]*$`),
		"a path, which begins with /, is decoded, and has no query: that is query[...]"},
	"type": {regexp.MustCompile(`^[^A-Z; ]*$`), "a media type in lower case, without parameters"},
}

// find returns the first value of the parameters, cookies or fields of a name, which may be a pattern, and the number
// of different values. The lines of a field are one value.
func find(f facts, in, name string) (value string, n int) {
	note := func(v string) {
		if n == 0 {
			value, n = v, 1
		} else if v != value {
			n++
		}
	}
	h := f.q.Header
	switch in {
	case "query":
		for param := range strings.SplitSeq(f.q.URL.RawQuery, "&") {
			if key, v, _ := strings.Cut(param, "="); param != "" && unescaped(key, name) {
				note(v)
			}
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		return value, n
	case "cookie":
		for pair := range cookies(h) {
			if key, v, _ := strings.Cut(pair, "="); pair != "=" && invalidation.Glob(name, key) {
				note(v)
			}
		}
		return value, n
	case "answer":
		h = f.h
	}
	if lines := h[name]; len(lines) > 0 {
		return strings.Join(lines, ", "), 1
	}
	if strings.Contains(name, "*") {
		for key := range h {
			if invalidation.Glob(strings.ToLower(name), strings.ToLower(key)) {
				return "", 1
			}
		}
	}
	return "", 0
}

// unescaped reports whether an escaped name of a parameter matches a pattern.
func unescaped(key, pattern string) bool {
	if plain, err := url.QueryUnescape(key); err == nil {
		key = plain
	}
	return invalidation.Glob(pattern, key)
}

// A PlaceError is a mistake at a place in an expression.
type PlaceError struct {
	Line, Column int // from 1
	Message      string
}

func (e *PlaceError) Error() string { return e.Message }

// ParseWhen parses a condition. An error is a *[PlaceError].
func ParseWhen(text string) (*When, error) { return parse(text, expr.AsBool()) }

// ParseText parses a variable, or a member of one, as a text.
func ParseText(text string) (*When, error) { return parse(text, expr.AsAny()) }

func parse(text string, as expr.Option) (*When, error) {
	program, err := expr.Compile(text, expr.Env(variables), as, expr.DisableAllBuiltins(), expr.Optimize(false), expr.MaxNodes(1000))
	if wrong := (*file.Error)(nil); errors.As(err, &wrong) {
		return nil, &PlaceError{wrong.Line, wrong.Column + 1, wrong.Message}
	} else if err != nil {
		return nil, &PlaceError{1, 1, err.Error()}
	}
	c := compiler{When: &When{Text: text}}
	if n := program.Node(); isOf(n, reflect.Bool) {
		c.condition = c.truth(n)
	} else {
		c.text = c.value(n)
	}
	slices.Sort(c.Uses)
	c.Uses = slices.Compact(c.Uses)
	if c.wrong != nil {
		c.wrong.Bind(file.NewSource(text))
		return nil, &PlaceError{c.wrong.Line, c.wrong.Column + 1, c.wrong.Message}
	}
	return c.When, nil
}

// of is the truth of a condition; nil = true.
func (w *When) of(f facts) truth {
	if w == nil {
		return yes
	}
	return w.condition(f)
}

// A compiler makes functions of an expression that the library has checked.
type compiler struct {
	*When
	wrong *file.Error // the first mistake
}

func (c *compiler) fail(n ast.Node, message string) {
	if c.wrong == nil {
		c.wrong = &file.Error{Location: n.Location(), Message: message}
	}
}

func isOf(n ast.Node, kind reflect.Kind) bool { return n.Type().Kind() == kind }

func (c *compiler) truth(n ast.Node) func(facts) truth {
	switch n := n.(type) {
	case *ast.BoolNode:
		return func(facts) truth { return truthOf(n.Value, true) }
	case *ast.UnaryNode:
		of := c.truth(n.Node)
		return func(f facts) truth { return yes - of(f) }
	case *ast.BinaryNode:
		switch n.Operator {
		case "&&", "and":
			a, b := c.truth(n.Left), c.truth(n.Right)
			return func(f facts) truth {
				t := a(f)
				if t != no {
					t = min(t, b(f))
				}
				return t
			}
		case "||", "or":
			a, b := c.truth(n.Left), c.truth(n.Right)
			return func(f facts) truth {
				t := a(f)
				if t != yes {
					t = max(t, b(f))
				}
				return t
			}
		}
		return c.test(n)
	}
	c.fail(n, "is no condition here: want comparisons, joined by &&, || and !")
	return nil
}

// test compares two values.
func (c *compiler) test(n *ast.BinaryNode) func(facts) truth {
	holds, ordered := compares[n.Operator]
	name := ""
	if v, ok := n.Left.(*ast.IdentifierNode); ok {
		name = v.Value
	}
	switch relate, related := relates[n.Operator]; {
	case name == "client":
		return c.networks(n)
	case n.Operator == "in":
		return c.in(n, name)
	case ordered && isOf(n.Left, reflect.Int) && isOf(n.Right, reflect.Int):
		a, b := c.number(n.Left), c.number(n.Right)
		return func(f facts) truth {
			x, known := a(f)
			y, also := b(f)
			return truthOf(holds(x-y), known && also)
		}
	case n.Operator == "matches":
		pattern, ok := n.Right.(*ast.StringNode)
		if !ok {
			c.fail(n.Right, "is no constant pattern")
			return nil
		}
		c.value(pattern)
		a, re := c.value(n.Left), regexp.MustCompile(pattern.Value) // the library has checked it
		return func(f facts) truth {
			s, known := a(f)
			return truthOf(known && re.MatchString(s), known)
		}
	case ordered || related:
		if constant, ok := n.Right.(*ast.StringNode); ok && n.Operator != "contains" && n.Operator != "endsWith" &&
			(name == "path" || n.Operator != "startsWith") {
			c.shaped(name, constant)
		}
		if ordered {
			relate = func(a, b string) bool { return holds(strings.Compare(a, b)) }
		}
		a, b := c.value(n.Left), c.value(n.Right)
		return func(f facts) truth {
			s, known := a(f)
			t, also := b(f)
			return truthOf(relate(s, t), known && also)
		}
	}
	c.fail(n, "is no comparison that rules have: want ==, !=, <, <=, >, >=, in, contains, startsWith, endsWith or "+
		"matches")
	return nil
}

// shaped refuses a constant that a variable can never be equal to.
func (c *compiler) shaped(name string, constant *ast.StringNode) {
	if shape, ok := shapes[name]; ok && !shape.re.MatchString(constant.Value) {
		c.fail(constant, name+" is never "+strconv.Quote(constant.Value)+": want "+shape.want)
	}
}

// in looks for a value in a range, or in a list, whose texts may be patterns, or for a name, which may be one, in what
// has names.
func (c *compiler) in(n *ast.BinaryNode, name string) func(facts) truth {
	switch right := n.Right.(type) {
	case *ast.IdentifierNode:
		key, ok := n.Left.(*ast.StringNode)
		if !ok {
			break
		}
		in, key2 := right.Value, canonicalName(right.Value, key.Value)
		c.Uses = append(c.Uses, in+"."+key2)
		return func(f facts) truth {
			_, n := find(f, in, key2)
			return truthOf(n > 0, in != "answer" || f.answered())
		}
	case *ast.BinaryNode:
		from, ok1 := right.Left.(*ast.IntegerNode)
		to, ok2 := right.Right.(*ast.IntegerNode)
		if right.Operator != ".." || !ok1 || !ok2 {
			break
		}
		a := c.number(n.Left)
		return func(f facts) truth {
			x, known := a(f)
			return truthOf(from.Value <= x && x <= to.Value, known)
		}
	case *ast.ArrayNode:
		var list []string
		for _, item := range right.Nodes {
			switch item := item.(type) {
			case *ast.StringNode:
				c.value(item)
				c.shaped(name, item)
				list = append(list, item.Value)
			case *ast.IntegerNode:
				list = append(list, strconv.Itoa(item.Value))
			default:
				c.fail(item, "is no constant")
			}
		}
		if isOf(n.Left, reflect.Int) {
			a := c.number(n.Left)
			return func(f facts) truth {
				x, known := a(f)
				return truthOf(slices.ContainsFunc(list, func(s string) bool { n, _ := strconv.Atoi(s); return n == x }), known)
			}
		}
		a := c.value(n.Left)
		return func(f facts) truth {
			s, known := a(f)
			return truthOf(anyGlob(list, s), known)
		}
	}
	c.fail(n, "in wants a list of constants, a range such as 200..299, or a name in query, header, cookie or answer")
	return nil
}

// networks compares the client with networks and addresses.
func (c *compiler) networks(n *ast.BinaryNode) func(facts) truth {
	c.Uses = append(c.Uses, "client")
	if n.Operator != "in" && n.Operator != "==" && n.Operator != "!=" {
		c.fail(n, "client is compared by in, == and != only")
	}
	nodes := []ast.Node{n.Right}
	if list, ok := n.Right.(*ast.ArrayNode); ok && n.Operator == "in" {
		nodes = list.Nodes
	}
	var all []netip.Prefix
	for _, node := range nodes {
		text, _ := node.(*ast.StringNode)
		if text == nil {
			c.fail(node, "is no constant network, such as \"10.0.0.0/8\"")
			continue
		}
		p, err := Network(text.Value)
		if err != nil {
			c.fail(node, "is no network or address")
		}
		all = append(all, p)
	}
	within := func(f facts) truth { return truthOf(inAny(all, f.client), f.client.IsValid()) }
	if n.Operator == "!=" {
		return func(f facts) truth { return yes - within(f) }
	}
	return within
}

func (c *compiler) number(n ast.Node) func(facts) (int, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return func(facts) (int, bool) { return n.Value, true }
	case *ast.IdentifierNode:
		c.Uses = append(c.Uses, n.Value)
		return numbers[n.Value]
	}
	c.fail(n, "is neither a number, nor status or length")
	return nil
}

func (c *compiler) value(n ast.Node) func(facts) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		if strings.ContainsFunc(n.Value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			c.fail(n, `has a control character, as \b is between quotes: write patterns between backquotes`)
		}
		return func(facts) (string, bool) { return n.Value, true }
	case *ast.IdentifierNode:
		c.Uses = append(c.Uses, n.Value)
		if of := texts[n.Value]; of != nil {
			return of
		}
		if of := numbers[n.Value]; of != nil {
			return func(f facts) (string, bool) {
				i, known := of(f)
				return strconv.Itoa(i), known
			}
		}
	case *ast.MemberNode:
		of, named := n.Node.(*ast.IdentifierNode)
		if key, constant := n.Property.(*ast.StringNode); named && constant {
			in, name := of.Value, canonicalName(of.Value, key.Value)
			if strings.Contains(name, "*") {
				c.fail(key, "is a pattern, which has no value: ask whether it is in "+in)
			}
			c.Uses = append(c.Uses, in+"."+name)
			return func(f facts) (string, bool) {
				s, n := find(f, in, name)
				return s, n < 2 && (in != "answer" || f.answered())
			}
		}
	}
	c.fail(n, "is no text that rules have: want a variable, one with a constant name in brackets, or a constant")
	return nil
}

// canonicalName is a name of a field as headers have it.
func canonicalName(in, name string) string {
	if in == "header" || in == "answer" {
		return http.CanonicalHeaderKey(name)
	}
	return name
}
