package admin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// A Cluster is the status of all peers, each as it reports itself.
type Cluster struct {
	Peers []ClusterRow `json:"peers"` // the peer that got the request is first
	All   Figures      `json:"all"`   // the sums of those that answered
}

// Figures count a peer's work for clients since it started, without requests of siblings.
type Figures struct {
	Requests uint64 `json:"requests"`
	// of those, answered without the origin: from the store, from siblings, or from another's fetch
	Hits        uint64 `json:"hits"`
	SiblingHits uint64 `json:"sibling_hits"`    // of the hits, those from siblings
	ToOrigins   uint64 `json:"origin_requests"` // sent to origins, validations and background ones included

	BytesToClients   uint64 `json:"bytes_to_clients"`
	BytesFromOrigins uint64 `json:"bytes_from_origins"`
	BytesSaved       uint64 `json:"bytes_saved"` // sent to clients and not by origins
}

// figuresOf computes the figures of a peer from its counters.
func figuresOf(t proxy.Counts) Figures {
	local := t.LocalHits - min(t.LocalHits, t.ServedToSiblings)
	return Figures{
		Requests: t.Requests - min(t.Requests, t.ServedToSiblings+t.NotServedToSiblings+t.RefusedAskers),
		Hits:     local + t.SiblingHits + t.Collapsed, SiblingHits: t.SiblingHits, ToOrigins: t.OriginRequests,
		BytesToClients: t.BytesToClients, BytesFromOrigins: t.BytesFromOrigins, BytesSaved: t.BytesToClients - min(t.BytesToClients, t.BytesFromOrigins),
	}
}

// A ClusterRow is the status of one peer of the cluster, as it reports itself.
type ClusterRow struct {
	Peer string `json:"peer"`
	// State is "serving", "starting" or "draining"; "hangs", "alone", "behind" or "degraded", the
	// first of these that applies, explained in Troubles; or, for a peer that does not report, "dead" or "no answer".
	State    string   `json:"state"`
	Troubles []string `json:"troubles"`        // sentences without a full stop
	Admin    string   `json:"admin,omitempty"` // where other machines reach its status page; "" = not reachable
	Zone     string   `json:"zone,omitempty"`
	// The program that it runs, and since when; "" and zero = unknown.
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Figures
	Others int          `json:"others"` // other peers that it considers alive
	Behind int          `json:"behind"` // of those, the ones whose newest digest it has lacked for a second or more
	Asked  []ClusterAsk `json:"asked"`
}

// A ClusterAsk counts the requests of a peer to another one.
type ClusterAsk struct {
	Peer      string `json:"peer"`
	Hits      int64  `json:"hits"`
	FalseHits int64  `json:"false_hits"`
	Failures  int64  `json:"failures"`
}

// RowOf returns the row for a status.
func RowOf(s Status) ClusterRow {
	r := ClusterRow{Peer: s.Name, Admin: s.Addresses.page(), Zone: s.Zone, Version: s.Version, Started: s.Started, State: s.State, Figures: figuresOf(s.Traffic), Asked: []ClusterAsk{}, Troubles: []string{}}
	for line := range strings.Lines(s.Health.lines()) {
		r.Troubles = append(r.Troubles, strings.TrimSuffix(line, "\n"))
	}
	longest := time.Duration(0)
	for _, m := range s.Members {
		r.Asked = append(r.Asked, ClusterAsk{m.Name, m.Hits, m.FalseHits, m.Failures})
		if m.Squid || !m.Here() {
			continue
		}
		r.Others++
		late := time.Duration(m.Age * float64(time.Second))
		if m.MemoryBytes == 0 { // its first digest is still missing
			late = s.Now.Sub(m.Since)
		}
		if !m.Current && late >= time.Second {
			r.Behind++
			longest = max(longest, late)
		}
	}
	if r.Behind > 0 {
		r.Troubles = append(r.Troubles, fmt.Sprintf("behind: %d of %s, for %s", r.Behind, table.Of(r.Others, "digest"),
			Span(longest)))
	}
	switch alone := slices.ContainsFunc(s.Health.Degraded,
		func(t Trouble) bool { return t.Part == "cluster" && t.Severe }); {
	case !s.Health.OK:
		r.State = "hangs"
	case !s.Ready:
	case alone:
		r.State = "alone"
	case r.Behind > 0:
		r.State = "behind"
	case len(r.Troubles) > 0:
		r.State = "degraded"
	}
	return r
}

// Silent returns the row of a peer that does not report.
func Silent(peer, state, trouble string) ClusterRow {
	return ClusterRow{Peer: peer, State: state, Troubles: []string{trouble}, Asked: []ClusterAsk{}}
}

// ClusterOf adds up rows. It marks a peer as alone if it reports that no other peer is alive.
func ClusterOf(rows []ClusterRow) Cluster {
	c := Cluster{Peers: rows}
	for i := range rows {
		r := &rows[i]
		if len(rows) > 1 && r.Others == 0 && r.State == "serving" {
			r.State, r.Troubles = "alone", append(r.Troubles, "alone: it considers no other peer alive")
		}
		a := &c.All
		a.Requests, a.Hits, a.SiblingHits, a.ToOrigins = a.Requests+r.Requests, a.Hits+r.Hits, a.SiblingHits+r.SiblingHits, a.ToOrigins+r.ToOrigins
		a.BytesToClients, a.BytesFromOrigins, a.BytesSaved = a.BytesToClients+r.BytesToClients, a.BytesFromOrigins+r.BytesFromOrigins, a.BytesSaved+r.BytesSaved
	}
	return c
}

// nameWidth is the width of a peer's name in a table of 80 columns.
const nameWidth = 14

// short shortens a name to nameWidth. It keeps both ends, since names often differ at their ends.
func short(name string) string {
	r := []rune(name)
	if len(r) <= nameWidth {
		return name
	}
	return string(r[:nameWidth/2-1]) + "…" + string(r[len(r)-nameWidth/2:])
}

// ClusterText formats c for people, in 80 columns except for the troubles below the table.
func ClusterText(c Cluster) string {
	t := table.New("PEER", ">REQUESTS", ">HITS", ">SIBLINGS", ">TO ORIGIN", ">SAVED", "STATE")
	row := func(name, state string, f Figures) {
		t.Row(name, table.Count(f.Requests), table.Percent(f.Hits, f.Requests), table.Percent(f.SiblingHits, f.Requests),
			table.Count(f.ToOrigins), table.Bytes(f.BytesSaved), state)
	}
	silent, troubles := 0, ""
	for _, r := range c.Peers {
		if r.State == "dead" || r.State == "no answer" {
			silent++
			t.Row(short(r.Peer), "-", "-", "-", "-", "-", r.State)
		} else {
			row(short(r.Peer), r.State, r.Figures)
		}
		for _, trouble := range r.Troubles {
			troubles += r.Peer + ": " + trouble + "\n"
		}
	}
	t.Rule()
	row("all", fmt.Sprintf("%d of %d", len(c.Peers)-silent, len(c.Peers)), c.All)
	if troubles != "" {
		troubles = "\n" + troubles
	}
	return t.Text("") + troubles
}
