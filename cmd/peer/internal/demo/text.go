package demo

import (
	"fmt"
	"math"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// Text is r for people, in at most 80 columns.
func Text(r *Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\nin %.1f s: %s objects of %s in all,\n%s\n", r.Workload.Name, r.Seconds,
		table.Count(r.Workload.Objects), table.Bytes(r.Workload.Bytes), assigned(r))

	b.WriteString("\nHow the requests were answered\n")
	t := table.New("peer", ">requests", ">local hits", ">sibling hits", ">origin", ">collapsed", ">false hits", ">missed")
	r.eachRow(t, func(p Row) {
		t.Row(p.Name, table.Count(p.Requests), table.Count(p.LocalHits), table.Count(p.SiblingHits), table.Count(p.OriginFetches),
			table.Count(p.Collapsed), table.Count(p.FalseHits), table.Count(p.Missed))
	})
	b.WriteString(t.Text("  "))

	b.WriteString("\nWhat the digests cost\n")
	t = table.New("peer", ">sent", ">received", ">snapshots sent", ">received", ">deltas sent", ">received", ">adverts")
	r.eachRow(t, func(p Row) {
		t.Row(p.Name, table.Bytes(p.BytesSent), table.Bytes(p.BytesReceived), table.Count(p.SnapshotsSent), table.Count(p.SnapshotsReceived),
			table.Count(p.DeltasSent), table.Count(p.DeltasReceived), table.Count(p.AdvertsSent))
	})
	b.WriteString(t.Text("  "))

	fmt.Fprintf(&b, "\nWhat the same requests cost at %s a second, here and elsewhere\n", table.Count(int64(r.pace())))
	t = table.New("", ">origin fetches", ">origin bytes", ">messages", ">message bytes")
	titles := map[string]string{
		"summarycache": "summarycache and membership", "icp": "ICP, asking all at each miss", "none": "no cooperation", "floor": "the floor, each object once",
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

// eachRow adds the row of each peer to t, and that of all together below a rule.
func (r *Result) eachRow(t *table.Table, row func(Row)) {
	for _, p := range r.Peers {
		row(p)
	}
	t.Rule()
	row(r.Total)
}

// pace is how many requests came a second.
func (r *Result) pace() float64 { return float64(r.Workload.Requests) / max(r.Seconds, 1) }

// smallSite is a rate of requests that small sites have: about a million a day.
const smallSite = 13.3

// slower says how to run the same at the pace of a small site, if this was faster.
func slower(r *Result) string {
	if r.pace() <= 2*smallSite {
		return ""
	}
	return fmt.Sprintf(". A small site's: --rate %g, with which these take %s", smallSite, minutes(float64(r.Workload.Requests)/smallSite))
}

func minutes(seconds float64) string {
	return table.Of(int64(max(1, math.Round(seconds/60))), "minute")
}

func assigned(r *Result) string {
	if r.Workload.Clients > 0 {
		return fmt.Sprintf("%s clients assigned to %d peers by hash", table.Count(r.Workload.Clients), len(r.Peers))
	}
	return fmt.Sprintf("each request assigned to one of %d peers at random", len(r.Peers))
}

// notes explains the words and figures above.
func notes(r *Result) string {
	t := table.New("", "")
	note := func(word, format string, args ...any) { t.Row(word, fmt.Sprintf(format, args...)) }
	note("false hits", "requests to siblings that lacked the object: %.2f %% of %s", 100*r.FalseShare, table.Count(r.Total.SiblingRequests))
	note("missed", "origin fetches of an object that a sibling's store held; its digest had not arrived yet")
	note("origin", "%.2f %% more fetches than the floor, where two peers got a request at the same time", 100*r.OverFloor)
	note("sent", "all messages about digests. A change waits for others at most %.0f ms, so that they share a message. It is applied %.0f ms after the advert (at most %.0f ms). Membership took %s more.",
		1000*r.Wait, 1000*r.LagMean, 1000*r.LagMax, table.Bytes(r.Membership))
	note("pace", "%s requests a second. At a lower rate fewer changes share a message, and membership, which costs the same each second, weighs more%s",
		table.Count(int64(r.pace())), slower(r))
	note("ICP", "2 x (peers - 1) datagrams a miss: queries of 25 bytes and the URL, answers of 21 and the URL (RFC 2186). All bytes are payload, without the headers of TLS, TCP, UDP and IP.")
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
