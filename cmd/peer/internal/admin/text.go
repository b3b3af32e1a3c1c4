package admin

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// StatusText formats s for people.
func StatusText(s Status) string {
	var b strings.Builder
	role := "forward proxy"
	if s.Origin != "" {
		role = "reverse proxy for " + s.Origin
	}
	if s.Cluster != "" {
		role += ", in cluster " + s.Cluster
	}
	fmt.Fprintf(&b, "%s is %s, up %s, %s\n", s.Name, s.State, Span(s.Now.Sub(s.Started)), role)
	encrypted := "not encrypted"
	if s.Encrypted {
		encrypted = "encrypted"
	}
	fmt.Fprintf(&b, "listen %s   admin %s   gossip %s (%s)\n", s.Addresses.Listen, s.Addresses.Admin,
		s.Addresses.Gossip, encrypted)
	if until := s.CertificateUntil; !until.IsZero() {
		fmt.Fprintf(&b, "certificate until %s\n", until.Format(time.DateTime+" MST"))
	}
	b.WriteByte('\n')
	writeHealth(&b, s)
	t := s.Traffic
	fromClients := figuresOf(t).Requests
	rows := table.New("requests", ">count", ">share", "")
	row := func(name string, n uint64, note string) {
		rows.Row(name, table.Count(n), table.Percent(n, fromClients), note)
	}
	row("of clients", fromClients, "")
	row("  local hits", t.LocalHits-min(t.LocalHits, t.ServedToSiblings), "")
	row("  revalidated", t.Revalidations, "")
	row("  sibling hits", t.SiblingHits, "")
	row("  from the origin", t.OriginFetches, "")
	notStored := uint64(0)
	for _, n := range t.NotStored {
		notStored += n
	}
	row("    not stored", notStored, obstacles(t.NotStored))
	row("  collapsed", t.Collapsed, "shared the answer to another request")
	row("  not cacheable", t.Bypassed, "")
	row("  errors", t.ClientErrors-min(t.ClientErrors, t.RefusedAskers)+t.GatewayErrors, "")
	rows.Row("of siblings", table.Count(t.ServedToSiblings+t.NotServedToSiblings), "",
		fmt.Sprintf("%s had the object, %s not", table.Count(t.ServedToSiblings), table.Count(t.NotServedToSiblings)))
	rows.Row("to siblings", table.Count(t.SiblingRequests), "",
		fmt.Sprintf("%s false hits, %s failed", table.Count(t.FalseHits), table.Count(t.SiblingErrors)))
	rows.Row("to origins", table.Count(t.OriginRequests), "", fmt.Sprintf("%s failed", table.Count(t.OriginErrors)))
	b.WriteString(rows.Text(""))
	alive, current := 0, 0
	for _, m := range s.Members {
		if m.Here() {
			alive++
			if m.Current {
				current++
			}
		}
	}
	d := s.Digest
	rows = table.New("", "") // its header is an empty line
	figures := func(name, format string, args ...any) { rows.Row(name, fmt.Sprintf(format, args...)) }
	figures("store", "%s, %s of %s", table.Of(s.Store.Objects, "object"), table.Bytes(s.Store.Bytes),
		table.Bytes(s.Store.RoomBytes))
	figures("memory", "%s", s.Memory.text())
	figures("digest", "%s of %s planned, %s, false positives %s, version %d.%d",
		table.Of(d.Keys, "object"), table.Count(d.Planned), table.Bytes(d.MemoryBytes), rate(d.FalsePositiveRate),
		d.Epoch, d.Sequence)
	figures("others", "%s, %d alive, %s current", table.Of(len(s.Members), "peer"), alive, table.Of(current, "digest"))
	b.WriteString(rows.Text(""))
	return b.String()
}

// text says what the accounts hold, those with the most first.
func (m Memory) text() string {
	accounts := slices.Clone(m.Accounts)
	slices.SortStableFunc(accounts, func(a, b budget.Usage) int { return cmp.Compare(b.Held, a.Held) })
	var parts []string
	refused := int64(0)
	for _, a := range accounts {
		if refused += a.Refused; a.Held > 0 {
			parts = append(parts, a.Name+" "+table.Bytes(a.Held))
		}
	}
	text := table.Bytes(m.Held()) + " held"
	if m.Limit < math.MaxInt64/2 {
		text += " of " + table.Bytes(m.Budget)
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if refused > 0 {
		text += fmt.Sprintf("; %s refused", table.Count(refused))
	}
	return text
}

// obstacles lists the reasons why answers were not stored, the most frequent first. If that is the
// lack of a lifetime, it names the setting that helps.
func obstacles(counts map[string]uint64) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(counts)), func(name string) bool { return counts[name] == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	var text []string
	for _, name := range names {
		text = append(text, name+" "+table.Count(counts[name]))
	}
	if len(names) > 0 && names[0] == "no-lifetime" {
		text = append(text, "see --default-ttl")
	}
	return strings.Join(text, ", ")
}

// writeHealth prints the faults, if there are any.
func writeHealth(b *strings.Builder, s Status) {
	text := s.Health.lines()
	if s.Origin == "" { // for a reverse proxy, failing origins are among the troubles
		for _, f := range s.Origins[:min(len(s.Origins), 5)] {
			text += fmt.Sprintf("origin %s has not answered since %s: %s\n", f.Host,
				f.Since.UTC().Format(time.RFC3339), f.Reason)
		}
	}
	if len(s.Health.Missing) > 0 {
		text += "not current, no answer in time: " + strings.Join(s.Health.Missing, ", ") + "\n"
	}
	if text != "" {
		b.WriteString(text + "\n")
	}
}

// MembersText formats the members of a status for people, the peer itself first.
func MembersText(s Status) string {
	names := []string{"NAME", "STATE", ">FOR", "SERVICE", ">OBJECTS", "DIGEST", ">HITS", ">FALSE HITS", ">FAILED"}
	zoned := s.Zone != "" || slices.ContainsFunc(s.Members, func(m Member) bool { return m.Zone != "" })
	if zoned {
		names = append(names, "ZONE", ">RECEIVED")
	}
	lights := s.Exchange.Light || slices.ContainsFunc(s.Members, func(m Member) bool { return m.Light })
	if lights {
		names = append(names, "KEEPS")
	}
	deaf := slices.ContainsFunc(s.Members, func(m Member) bool { return m.Hears != "" && m.Hears != "yes" })
	if deaf {
		names = append(names, "HEARS US")
	}
	t := table.New(append(names, "VERSION", "STARTED")...)
	row := func(light bool, zone, received, hears, version string, started time.Time, cells ...any) {
		if zoned {
			cells = append(cells, cmp.Or(zone, "-"), received)
		}
		if lights {
			cells = append(cells, map[bool]string{false: "all", true: "none"}[light])
		}
		if deaf {
			cells = append(cells, cmp.Or(hears, "-"))
		}
		since := "-"
		if !started.IsZero() {
			since = started.Local().Format(time.DateTime)
		}
		t.Row(append(cells, cmp.Or(short(version), "-"), since)...)
	}
	row(s.Exchange.Light, s.Zone, "-", "-", s.Version, s.Started, short(s.Name), "self", rough(s.Now.Sub(s.Started)),
		s.Addresses.Service, table.Count(s.Digest.Keys), "own", "-", "-", "-")
	for _, m := range s.Members {
		digest := "none"
		switch {
		case s.Exchange.Light:
		case m.Current:
			digest = "current"
		case m.Keys > 0:
			digest = rough(time.Duration(m.Age*float64(time.Second))) + " old"
		}
		row(m.Light, m.Zone, table.Bytes(m.Bytes), m.Hears, m.Version, m.Started, short(m.Name), m.State,
			rough(s.Now.Sub(m.Since)), cmp.Or(m.Service, "-"), table.Count(m.Keys), digest,
			table.Count(m.Hits), table.Count(m.FalseHits), table.Count(m.Failures))
	}
	return t.Text("")
}

func rate(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 1e-5:
		return "<0.001 %"
	}
	return fmt.Sprintf("%.2g %%", 100*f)
}

// rough formats a duration in one unit.
func rough(d time.Duration) string {
	units := strings.Fields(Span(d))
	return units[0] + " " + units[1]
}

// Span formats a duration in one or two units.
func Span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}
