package admin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// because says in words what the tokens of Cache-Status say, of what was and of what would be.
var because = map[string]string{
	"uri-miss": "not here", "vary-miss": "no variant fits", "miss": "no variant fits", "stale": "stale here",
	"request": "the request wants a fresher one",
	"method":  "the method is not cached", "bypass": "not for a cache", "rule": "a rule says so",
	"partial": "a range of what is not here",
	"status":  "an error is not stored", "request-no-store": "the request forbids storing",
	"no-store": "the answer forbids storing", "private": "the answer is private",
	"authorization": "for credentials", "vary": "it varies by *", "set-cookie": "it sets a cookie",
	"expired": "it came expired", "no-lifetime": "no lifetime is stated",
}

// Because returns what a token of Cache-Status says in words.
func Because(token string) string { return cmp.Or(because[token], token) }

// words returns the reason of a miss in a few words.
func (m *Miss) words() string {
	words := []string{}
	if m.Reason != "" {
		words = append(words, Because(m.Reason))
	}
	switch {
	case m.Outcome == "client-gone":
		words = append(words, "the client left")
	case m.Error != "":
		words = append(words, m.Error)
	case m.Sibling != "" || m.Detail == "":
	default:
		words = append(words, Because(m.Detail))
	}
	return strings.Join(words, "; ")
}

// source says where the answer came from.
func (m Miss) source() string {
	switch m.Outcome {
	case "origin-fetch", "revalidated", "bypass":
		return "origin"
	}
	return cmp.Or(m.Sibling, "-")
}

// MissesText formats misses for people, the latest last.
func MissesText(all Misses) string {
	var b strings.Builder
	for _, m := range slices.Backward(all.Misses) {
		b.WriteString(m.Line())
	}
	for _, s := range all.Silent {
		fmt.Fprintf(&b, "%s: %s\n", s.Peer, s.Error)
	}
	if len(all.Misses) == 0 {
		b.WriteString("No such miss is remembered.\n")
	}
	return b.String()
}

// Line returns a miss in one or two lines of a terminal.
func (m Miss) Line() string {
	from := ""
	if source := m.source(); source != "-" {
		from = " from " + source
	}
	return fmt.Sprintf("%s %s %s %d %s\n  %s, %s, %s%s: %s\n", m.At.Local().Format(time.TimeOnly), m.Peer, m.Method,
		m.Status, m.URL,
		m.Outcome, took(m.Seconds), table.Bytes(m.Bytes), from, cmp.Or(m.Why, "no reason is known"))
}

func took(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Microsecond).String()
}

// TopText formats the largest groups of misses for people.
func TopText(all Misses, by string, most int) string {
	type group struct {
		name    string
		n       int
		bytes   int64
		seconds float64
	}
	groups := make(map[string]*group)
	for _, m := range all.Misses {
		name := map[string]string{"url": m.URL, "site": siteOf(m.URL), "reason": cmp.Or(m.Why, "unknown"),
			"outcome": m.Outcome, "source": m.source(), "peer": m.Peer}[by]
		g := groups[name]
		if g == nil {
			g = &group{name: name}
			groups[name] = g
		}
		g.n++
		g.bytes += m.Bytes
		g.seconds += m.Seconds
	}
	sorted := slices.SortedFunc(maps.Values(groups), func(a, b *group) int { return cmp.Or(b.n-a.n, cmp.Compare(a.name, b.name)) })
	t := table.New(">MISSES", ">SHARE", ">BYTES", ">MEAN TIME", strings.ToUpper(by))
	for _, g := range sorted[:min(len(sorted), most)] {
		t.Row(table.Count(g.n), table.Percent(uint64(g.n), uint64(len(all.Misses))), table.Bytes(g.bytes), took(g.seconds/float64(g.n)), g.name)
	}
	text := t.Text("")
	if len(all.Misses) > 0 {
		first := all.Misses[len(all.Misses)-1].At
		text = fmt.Sprintf("%s that were no hits since %s, in %s\n", table.Of(len(all.Misses), "request"),
			first.Local().Format(time.DateTime), table.Of(len(groups), "group")) + text
	}
	for _, s := range all.Silent {
		text += s.Peer + ": " + s.Error + "\n"
	}
	return text
}
