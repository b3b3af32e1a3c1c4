package demo

import (
	"fmt"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// Text returns r as text of at most 80 columns.
func Text(r *Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\nin %.1f s: %s objects of %s in all,\n%s\n", r.Workload.Name, r.Seconds,
		table.Count(r.Workload.Objects), table.Bytes(r.Workload.Bytes), assigned(r))

	b.WriteString("\nHow the requests were answered\n")
	t := table.New("peer", ">requests", ">local hits", ">sibling hits", ">origin", ">collapsed",
		">false hits", ">missed")
	r.eachRow(t, func(p Row) {
		t.Row(p.Name, table.Count(p.Requests), table.Count(p.Local), table.Count(p.Sibling), table.Count(p.OriginFetches),
			table.Count(p.Shared), table.Count(p.FalseHits), table.Count(p.Missed))
	})
	b.WriteString(t.Text("  "))

	b.WriteString("\nWhat the digests cost\n")
	t = table.New("peer", ">sent", ">received", ">snapshots", ">deltas", ">adverts")
	r.eachRow(t, func(p Row) {
		t.Row(p.Name, table.Bytes(p.BytesSent), table.Bytes(p.BytesReceived),
			table.Count(p.SnapshotsReceived), table.Count(p.DeltasReceived), table.Count(p.AdvertsSent))
	})
	b.WriteString(t.Text("  "))

	fmt.Fprintf(&b, "\nWhat the same requests cost at %s a second, by way of cooperation\n",
		table.Count(int64(r.pace())))
	t = table.New("", ">origin fetches", ">origin bytes", ">messages", ">message bytes")
	titles := map[string]string{
		"summarycache": "summarycache and membership", "icp": "ICP, asking all at each miss", "none": "no cooperation",
		"floor": "the floor, each object once",
	}
	for _, a := range r.Compare {
		messages, bytes := "-", "-"
		if a.Messages > 0 {
			messages, bytes = table.Count(a.Messages), table.Bytes(a.MessageBytes)
		}
		t.Row(titles[a.Name], table.Count(a.OriginFetches), table.Bytes(a.OriginBytes), messages, bytes)
	}
	b.WriteString(t.Text("  "))
	return b.String() + notes(r)
}

// eachRow adds a row for each peer to t and, below a rule, one for all of them.
func (r *Result) eachRow(t *table.Table, row func(Row)) {
	for _, p := range r.Peers {
		row(p)
	}
	t.Rule()
	row(r.Total)
}

// pace returns the requests per second.
func (r *Result) pace() float64 { return float64(r.Workload.Requests) / max(r.Seconds, 1) }

func assigned(r *Result) string {
	if r.Workload.Clients > 0 {
		return fmt.Sprintf("%s clients assigned to %d peers by hash", table.Count(r.Workload.Clients), len(r.Peers))
	}
	return fmt.Sprintf("each request assigned to one of %d peers at random", len(r.Peers))
}

// notes explains the terms and numbers of the tables.
func notes(r *Result) string {
	t := table.New("", "")
	note := func(word, format string, args ...any) { t.Row(word, fmt.Sprintf(format, args...)) }
	note("false hits", "requests to siblings that lacked the object: %.2f %% of %s", 100*r.FalseShare,
		table.Count(r.Total.SiblingRequests))
	note("missed", "origin fetches of an object that a sibling's store held; its digest had not arrived yet")
	note("origin", "%.2f %% more fetches than the floor, where two peers got a request at the same time",
		100*r.OverFloor)
	note("sent", "all messages about digests, of which snapshots and deltas are counted where they are received. A "+
		"change waits for others at most %.0f ms, so that they share a message. It is applied %.0f ms after the "+
		"advert (at most %.0f ms). Membership took %s more.",
		1000*r.Wait, 1000*r.LagMean, 1000*r.LagMax, table.Bytes(r.Membership))
	note("pace", "%s requests a second. At a lower --rate fewer changes share a message, and membership, which costs "+
		"the same each second, is a larger part",
		table.Count(int64(r.pace())))
	note("ICP", "2 x (peers - 1) datagrams a miss: queries of 25 bytes and the URL, answers of 21 and the URL (RFC "+
		"2186). All bytes are payload, without the headers of TLS, TCP, UDP and IP.")
	if n := r.Total.SiblingErrors; n > 0 {
		note("failed", "%s to siblings got no answer in time", table.Of(n, "request"))
	}
	if r.Late() {
		note("late", "%.0f requests a second, not %.0f: this machine was too busy, and digests were late",
			float64(r.Workload.Requests)/r.Seconds, r.Workload.Rate)
	}
	if r.Errors == 0 {
		note("clients", "no error; all %s of bodies were right for their URLs", table.Bytes(r.Checked))
	} else {
		note("clients", "%s ERRORS, the first: %s", table.Count(r.Errors), r.FirstError)
	}
	return t.Text("")
}
