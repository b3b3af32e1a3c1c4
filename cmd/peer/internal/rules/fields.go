package rules

import (
	"net/http"
	"slices"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
)

// A Field is a change of a header field: it is set to Value, or Value is added to it, or it is removed.
type Field struct {
	Name, Value string // the name in canonical form
	Op          byte   // 0 = set, '+' = add, '-' = remove
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
func change(h http.Header, by []*Rule, fields func(*Rule) []Field, tell func(*Rule, Field)) {
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
				h[f.Name] = slices.Concat(h[f.Name], []string{f.Value})
			default:
				h[f.Name] = []string{f.Value}
			}
			tell(rule, f)
		}
	}
}

// Delivers reports whether any rule changes what clients get.
func (s Set) Delivers() bool {
	return slices.ContainsFunc(s, func(r Rule) bool { return r.ResponseHeader != nil })
}

// Deliver changes the header h of the answer that a client gets to q, which is the request as it was
// before [Set.Request].
func (s Set) Deliver(q *http.Request, status int, h http.Header) {
	var changing []*Rule
	ambiguous := canonical.Ambiguous(q.URL)
	for i := range s {
		if r := &s[i]; r.ResponseHeader != nil && r.matchesRequest(q, ambiguous, false) && r.matchesResponse(status, h) {
			changing = append(changing, r)
		}
	}
	change(h, changing, func(r *Rule) []Field { return r.ResponseHeader }, func(*Rule, Field) {})
}
