package engine

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// The field is read and written as in PROTOCOL.md.
func TestStatementVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/statements.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Valid []struct {
			Name, Field, Sums string
			Left              int64
			Slice             *int64
		}
		Invalid []struct{ Name, Field string }
	}
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors.Valid {
		s, err := parseStatement(http.Header{statementField: {v.Field}})
		if err != nil || hex.EncodeToString(s.sums) != v.Sums || v.Left >= 0 && s.left != time.Duration(v.Left)*time.Second || v.Left < 0 && s.left >= 0 ||
			(s.of.size > 0) != (v.Slice != nil) || v.Slice != nil && s.of.first != *v.Slice {
			t.Errorf("%s: %q is %+v, %v", v.Name, v.Field, s, err)
			continue
		}
		if got := string(s.append(nil)); got != v.Field && v.Name != "a parameter of a later version" {
			t.Errorf("%s: %q is written %q", v.Name, v.Field, got)
		}
	}
	for _, v := range vectors.Invalid {
		if s, err := parseStatement(http.Header{statementField: {v.Field}}); err == nil {
			t.Errorf("%s: %q is %+v", v.Name, v.Field, s)
		}
	}
	if len(vectors.Valid) < 5 || len(vectors.Invalid) < 10 {
		t.Errorf("%d and %d vectors", len(vectors.Valid), len(vectors.Invalid))
	}
	if s, err := parseStatement(http.Header{}); s != nil || err != nil {
		t.Errorf("without the field: %+v, %v", s, err)
	}
}

// FuzzStatement: any statement of a sibling is refused, or is within bounds and the same when it is
// written again.
func FuzzStatement(f *testing.F) {
	for _, s := range []string{"::", ":o22fiH2CxyY=:", ":pBVX8andg1kw5yEbgSdBig==:;left=3600", "::;left=-1", ":;left"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		s, err := parseStatement(http.Header{statementField: {field}})
		if err != nil {
			return
		}
		if len(s.sums) > len(field) || len(s.sums) > 8*maxStated || s.left > rfc9111.MaxDelta {
			t.Fatalf("%q is %d sums, %v left", field, len(s.sums), s.left)
		}
		again, err := parseStatement(http.Header{statementField: {string(s.append(nil))}})
		if err != nil || string(again.sums) != string(s.sums) || again.left != s.left || again.of != s.of {
			t.Fatalf("%q is %+v, then %+v, %v", field, s, again, err)
		}
	})
}
