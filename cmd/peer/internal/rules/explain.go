package rules

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
)

// AboutAnswers calls decided for each setting about the answer to q that a rule decides, or decides if the answer meets
// its conditions. q is as [Set.Request] returned it.
func (s Set) AboutAnswers(q *http.Request, decided func(Decision)) {
	f := facts{q: q, ambiguous: canonical.Ambiguous(q.URL)}
	for i, field := range reflect.VisibleFields(reflect.TypeFor[Rule]()) {
		if field.Tag.Get("of") != "answer" {
			continue
		}
		for j := range s {
			r := &s[j]
			value := reflect.ValueOf(r).Elem().Field(i)
			t := r.match(f)
			if value.IsZero() || t == no || t == maybe && !r.OfResponses() {
				continue
			}
			what := field.Tag.Get("name") + " " + fmt.Sprint(reflect.Indirect(value))
			if field.Name == "TTL" && !f.impersonal() {
				what += ", not with the cookies of this request"
			}
			if t == maybe {
				what += ", if the answer meets its conditions"
			}
			decided(Decision{what, r.Label()})
			if t == yes && field.Name != "ResponseHeader" { // each of whose fields is decided by itself
				break
			}
		}
	}
}
