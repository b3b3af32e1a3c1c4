package rules

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
)

// A Field is a change of a header field: it is set to Value, or Value is added to it, or it is removed.
// Value may refer to variables, as {host} or {header["Origin"]}.
type Field struct {
	Name, Value string  // the name in canonical form
	Op          byte    // 0 = set, '+' = add, '-' = remove
	References  []*When // those in Value, in their order
}

// reference matches a reference to a variable. Other braces stand for themselves, as those of JSON do.
var reference = regexp.MustCompile(`\{[a-z]+(\["[^"]*"\])?\}`)

// Refer finds the references in the value.
func (f *Field) Refer() error {
	for _, text := range reference.FindAllString(f.Value, -1) {
		w, err := ParseText(text[1 : len(text)-1])
		if err != nil {
			return fmt.Errorf("has %s: %v", text, err) // its place is one in the reference
		}
		f.References = append(f.References, w)
	}
	return nil
}

// text is the value for a request and its answer. Nothing in it ends a line.
func (f *Field) text(about facts) string {
	if f.References == nil {
		return f.Value
	}
	next := f.References
	return reference.ReplaceAllStringFunc(f.Value, func(string) string {
		s, _ := next[0].text(about)
		next = next[1:]
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return -1
			}
			return r
		}, s)
	})
}

// String returns the change as it is written in the configuration.
func (f Field) String() string {
	text := f.Name
	if f.Op != 0 {
		text = string(f.Op) + text
	}
	if f.Value != "" {
		text += " " + f.Value
	}
	return text
}

// change applies the fields of the rules, which are in their order, to h. About each field, the first rule
// that names it decides. h's lines may belong to others.
func change(about facts, h http.Header, by []*Rule, fields func(*Rule) []Field, tell func(*Rule, Field)) {
	for i, rule := range by {
		for _, f := range fields(rule) {
			names := func(g Field) bool { return g.Name == f.Name }
			if slices.ContainsFunc(by[:i], func(earlier *Rule) bool { return slices.ContainsFunc(fields(earlier), names) }) {
				continue
			}
			switch f.Op {
			case '-':
				delete(h, f.Name)
			case '+':
				h[f.Name] = slices.Concat(h[f.Name], []string{f.text(about)})
			default:
				h[f.Name] = []string{f.text(about)}
			}
			tell(rule, f)
		}
	}
}

// Delivers reports whether any rule changes what clients get.
func (s Set) Delivers() bool {
	return slices.ContainsFunc(s, func(r Rule) bool { return r.ResponseHeader != nil || r.Key != nil || r.ErrorPage != nil })
}

// Deliver changes the header h of the answer that a client gets to q, which is the request as it was
// before [Set.Request]. It returns the page that the client gets instead of the body; nil = none.
func (s Set) Deliver(q *http.Request, status int, h http.Header) *Page {
	var changing []*Rule
	f := facts{q: q, ambiguous: canonical.Ambiguous(q.URL), status: status, h: h}
	for i := range s {
		if r := &s[i]; r.ResponseHeader != nil && r.match(f) == yes {
			changing = append(changing, r)
		}
	}
	if key := s.key(f, func(*Rule) {}); key != nil {
		told(h, key)
	}
	change(f, h, changing, func(r *Rule) []Field { return r.ResponseHeader }, func(*Rule, Field) {})
	r := s.decide(f, func(r *Rule) (has, restricts bool) { return r.ErrorPage != nil, false })
	if r == nil {
		return nil
	}
	for _, name := range []string{"Accept-Ranges", "Content-Encoding", "Content-Language", "Content-Range", "Etag",
		"Last-Modified", "Expires", "Trailer"} {
		delete(h, name)
	}
	h["Content-Type"], h["Cache-Control"] = []string{r.ErrorPage.Type}, []string{"no-store"}
	h["Content-Length"] = []string{strconv.Itoa(len(r.ErrorPage.Body))}
	return r.ErrorPage
}
