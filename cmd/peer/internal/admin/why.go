package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// ExplanationText formats e for people.
func ExplanationText(e Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n%s\n", e.Method, e.URL, e.Text)
	for _, d := range e.Rules {
		fmt.Fprintf(&b, "Rule %s: %s\n", d.Rule, d.What)
	}
	if len(e.Past) > 0 {
		b.WriteString("\nThe last times that it was no hit:\n")
		for _, m := range e.Past {
			b.WriteString(m.Line())
		}
	}
	b.WriteString(holdersText(append([]Holder{{Peer: e.Peer, Stored: e.Stored}}, e.Others...)))
	if len(e.Matches) > 0 {
		t, last := table.New("PEER", "STATE", "VARIANT", "DIGEST SAYS", ">WRONG ODDS", "DIGEST AGE", ">ROUND TRIP",
			">ODDS", ">COST", "ASKED"), []any(nil)
		for _, m := range e.Matches {
			turn, odds, cost := "no", "-", "-"
			if m.Turn > 0 {
				turn, odds, cost = fmt.Sprintf("%d.", m.Turn), fmt.Sprintf("%.0f %%", 100*m.Odds), trip(m.Cost)
			}
			row := []any{m.Peer, m.State, variant(m.Identity), yes(m.Says), rate(m.FalsePositiveRate), seconds(m.Age), trip(m.RoundTrip), odds, cost, turn}
			// else a digest says the same of another variant
			if last == nil || row[0] != last[0] || !slices.Equal(row[3:], last[3:]) {
				t.Row(row...)
			}
			last = row
		}
		b.WriteString("\n" + t.Text(""))
	}
	return b.String()
}

// holdersText lists what each peer stores. Peers that store nothing, or do not answer, come
// below the table.
func holdersText(all []Holder) string {
	t := table.New("HELD BY", ">BYTES", ">AGE", "FRESHNESS", "IN DIGEST", "SELECTED", "RESPONSE")
	held, without, silent := false, []string{}, ""
	for _, h := range all {
		for _, s := range inRows(h.Stored) {
			held = true
			t.Row(h.Peer, table.Bytes(s.Bytes), seconds(s.Age), freshness(s), yes(s.Listed), yes(s.Selected), response(s))
		}
		switch {
		case h.Error != "":
			silent += "Unknown at " + h.Peer + ": " + h.Error + "\n"
		case len(h.Stored) == 0:
			without = append(without, h.Peer)
		}
	}
	text := "\n"
	if held {
		text += t.Text("")
	}
	if len(without) > 0 {
		text += "Not held by " + strings.Join(without, ", ") + "\n"
	}
	return text + silent
}

// version distinguishes a response from others of its URL.
func version(s engine.Stored) string {
	switch {
	case s.ETag != "":
		return s.ETag
	case s.LastModified != "":
		return "modified " + s.LastModified
	}
	return "of " + s.Date.UTC().Format(time.DateTime)
}

// response identifies a response by status, version, and the fields by which it varies.
func response(s engine.Stored) string {
	text := fmt.Sprintf("%d %s", s.Status, version(s))
	if v := variant(cutSlice(s.Identity)); v != "any" {
		text += ", for " + v
	}
	if s.Whole > 0 {
		text += fmt.Sprintf(", bytes %d-%d of %d", s.From, s.From+s.Bytes-1, s.Whole)
	}
	return text
}

// inRows joins slices that follow one another and differ in nothing that is shown. The age is that of the first.
func inRows(all []engine.Stored) (rows []engine.Stored) {
	for _, s := range all {
		if n := len(rows); n > 0 && s.Whole > 0 {
			r := &rows[n-1]
			if r.Whole == s.Whole && r.From+r.Bytes == s.From && version(*r) == version(s) && r.Listed == s.Listed && (r.FreshFor > 0) == (s.FreshFor > 0) {
				r.Bytes, r.Selected = r.Bytes+s.Bytes, r.Selected || s.Selected
				continue
			}
		}
		rows = append(rows, s)
	}
	return rows
}

// cutSlice returns the identity of the response of which an identity may be that of a slice.
func cutSlice(identity string) string {
	whole, _, _ := strings.Cut(identity, "\nslice:")
	return whole
}

// variant returns the part of an identity after its URL.
func variant(identity string) string {
	_, fields, _ := strings.Cut(identity, "\n")
	if fields == "" {
		return "any"
	}
	return strings.ReplaceAll(fields, "\n", " ")
}

// trip formats a time of usually some milliseconds; 0 = unknown.
func trip(s float64) string {
	if s == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g ms", 1000*s)
}

func seconds(s float64) string { return Span(time.Duration(s * float64(time.Second))) }

func freshness(s engine.Stored) string {
	text := "fresh for " + seconds(s.FreshFor)
	if s.FreshFor <= 0 {
		text = "stale for " + seconds(-s.FreshFor)
	}
	if s.Rule != "" {
		text += ", by rule " + s.Rule
	}
	return text
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// PurgeText formats r for people.
func PurgeText(r PurgeReport) string {
	t := table.New("PEER", ">REMOVED", "RESULT")
	for _, p := range r.Peers {
		removed := "-"
		if p.Removed != nil {
			removed = table.Count(*p.Removed)
		}
		t.Row(p.Peer, removed, cmp.Or(p.Error, "done"))
	}
	if r.URL != "" {
		return r.URL + "\n" + t.Text("")
	}
	return t.Text("")
}
