package main

import (
	"errors"
	"fmt"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/sim/caches"
	"github.com/summarycache/summarycache/sim/workload"
)

// mostReplayed is how many peers are replayed at most.
const mostReplayed = 64

// A compared is what plan --trace prints as JSON: the cost of a log's requests in several ways.
type compared struct {
	Trace        string  `json:"trace"` // the file's base name
	Read         string  `json:"read"`  // what the file is, and what of it was used
	Requests     int     `json:"requests"`
	RequestBytes int64   `json:"request_bytes"` // of all their bodies
	Objects      int     `json:"objects"`
	Bytes        int64   `json:"bytes"`   // of each object once
	Unsized      int     `json:"unsized"` // objects without a size; with those of all made up, -1
	Seconds      float64 `json:"seconds"` // from the first request to the last
	Clients      int     `json:"clients"` // 0 = unknown
	Peers        int     `json:"peers"`
	Size         int64   `json:"size"`      // of each peer's store
	TooLarge     int     `json:"too_large"` // objects that no peer stores
	Ways         []cost  `json:"ways"`
}

// A cost is that of all requests in one way.
type cost struct {
	Name        string `json:"name"` // "nothing", "apart", "one", "owners", "icp", "digests"
	Own         int    `json:"own_hits"`
	Sibling     int    `json:"sibling_hits"`
	Origin      int    `json:"origin_requests"`
	OriginBytes int64  `json:"origin_bytes"`
	// bodies between peers, which are more than the sibling hits if others fetch them
	Moved      int   `json:"moved"`
	MovedBytes int64 `json:"moved_bytes"`
	// between peers, besides the bodies and their requests, without membership
	Messages     int     `json:"messages"`
	MessageBytes float64 `json:"message_bytes"` // with headers and membership
	Membership   float64 `json:"membership_bytes"`
}

// compare names the ways, and those of package caches.
var compare = []struct{ name, way, title string }{
	{"nothing", "", "no cache"},
	{"apart", "none", "%s apart"},
	{"one", "none", "one cache of %s"},
	{"owners", "one owner per key", "owner hashing"},
	{"icp", "ICP", "ICP, asking all"},
	{"digests", "ours", "digests, as peer"},
}

// replay replays the log in each way.
func (c *planCommand) replay(e *environment) (*compared, error) {
	t, err := workload.ReadFile(c.Trace, workload.Options{})
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	r := &compared{
		Trace: t.Name, Read: t.Summary(), Requests: len(t.Requests), Objects: len(t.Sizes), Clients: t.Clients(),
		Peers: c.Peers, Size: c.Size,
	}
	if t.Bytes() == 0 {
		t.FillSizes()
		r.Unsized = -1
	}
	t.Settle()
	r.Bytes = t.Bytes()
	if r.Size == 0 {
		r.Size = max(1, r.Bytes/10)
	}
	for _, size := range t.Sizes {
		if size == 0 {
			r.Unsized++
		}
		if !caches.Fits(size, r.Size, true) {
			r.TooLarge++
		}
	}
	for _, q := range t.Requests {
		r.RequestBytes += q.Size
	}
	r.Seconds = t.Requests[len(t.Requests)-1].Seconds - t.Requests[0].Seconds
	fmt.Fprintf(e.stderr, "Replaying %s in %d ways ...\n", table.Of(r.Requests, "request"), len(compare))
	r.Ways = make([]cost, len(compare))
	done := make(chan error, len(compare)) // a replay that nobody waits for ends with the process
	for i := range compare {
		go func() { done <- r.cost(t, i) }()
	}
	for range compare {
		select {
		case err = <-done:
		case <-e.ctx.Done():
			err = errors.New("interrupted")
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// cost replays the log in one way.
func (r *compared) cost(t *workload.Trace, i int) error {
	w := &r.Ways[i]
	w.Name = compare[i].name
	peers, size := r.Peers, r.Size
	switch w.Name {
	case "nothing":
		w.Origin, w.OriginBytes = r.Requests, r.RequestBytes
		return nil
	case "one":
		peers, size = 1, size*int64(peers)
	}
	cluster := caches.New(t, caches.Options{Caches: peers, Limit: size, Sliced: true, Seed: 1})
	for _, way := range cluster.Ways() {
		if way.Name != compare[i].way {
			continue
		}
		o, err := cluster.Replay(way)
		if err != nil {
			return err
		}
		wire, bytes := cluster.MessageBytes(way, o)
		w.Own, w.Sibling, w.Origin, w.OriginBytes = o.Local, o.Remote, r.Requests-o.Local-o.Remote, o.FetchedBytes
		w.Moved, w.MovedBytes, w.Messages, w.MessageBytes = o.Moved, o.MovedBytes, o.Queries+o.Updates, bytes
		w.Membership = bytes - wire
		return nil
	}
	return fmt.Errorf("no way of cooperating is called %q", compare[i].way)
}

// title names a way.
func (r *compared) title(i int) string {
	switch compare[i].name {
	case "apart":
		return fmt.Sprintf(compare[i].title, table.Of(r.Peers, "cache"))
	case "one":
		return fmt.Sprintf(compare[i].title, table.Bytes(r.Size*int64(r.Peers)))
	}
	return compare[i].title
}

// way returns the cost of a way by its name.
func (r *compared) way(name string) cost {
	for _, w := range r.Ways {
		if w.Name == name {
			return w
		}
	}
	return cost{}
}

// answer says in a sentence what the peers save.
func (r *compared) answer() string {
	digests := r.way("digests")
	beside := func(name, what string) string {
		other := r.way(name)
		more := "fewer"
		n := other.Origin - digests.Origin
		if n < 0 {
			n, more = -n, "more"
		}
		return fmt.Sprintf("%s %s than %s", table.Count(n), more, what)
	}
	return fmt.Sprintf("%s of %s each save %s of the requests to the origin and %s of their bytes: "+
		"%s requests are left, %s, %s, and %s.",
		table.Of(r.Peers, "peer"), table.Bytes(r.Size), table.Percent(r.Requests-digests.Origin, r.Requests),
		table.Percent(r.RequestBytes-digests.OriginBytes, r.RequestBytes), table.Count(digests.Origin),
		beside("apart", "apart"), beside("one", "one cache of all their space"), beside("owners", "owner hashing"))
}

// notes say what the numbers are, and what they leave out.
func (r *compared) notes() []string {
	notes := []string{
		fmt.Sprintf("The log: %s, of %s of bodies; %s of %s in all; %s.",
			table.Of(r.Requests, "request"), table.Bytes(r.RequestBytes),
			table.Of(r.Objects, "object"), table.Bytes(r.Bytes), rate(r)),
		"Nothing expires and nothing changes here, so that in fact there are fewer hits. Each object has the " +
			"largest size that the log says. Full stores evict the least recently used object.",
		fmt.Sprintf("Messages are those between peers, besides the bodies and their requests; their bytes have the "+
			"headers of IP and UDP. Those of digests have %s of membership, which costs the same each second.",
			table.Bytes(int64(r.way("digests").Membership))),
	}
	if r.Clients > 0 {
		notes = append(notes, fmt.Sprintf("Clients are assigned to the peers by hash: %s.", table.Of(r.Clients, "client")))
	} else {
		notes = append(notes, "The log names no clients: requests are assigned to the peers in runs of 20 to 50.")
	}
	switch {
	case r.Unsized < 0:
		notes = append(notes, "The log has no sizes. They are made up, from 1 to 128 KiB.")
	case r.Unsized > 0:
		notes = append(notes, table.Of(r.Unsized, "object")+
			" never answered by a whole 200 have no size, and count as 0 bytes.")
	}
	if r.TooLarge > 0 {
		notes = append(notes, fmt.Sprintf("Too large for a peer's store: %s.", table.Of(r.TooLarge, "object")))
	}
	return notes
}

// rate says how fast the requests came.
func rate(r *compared) string {
	if r.Seconds <= 0 {
		return "all at one time"
	}
	return fmt.Sprintf("%.3g a second", float64(r.Requests)/r.Seconds)
}

func (r *compared) text() string {
	t := table.New("", ">own hits", ">sibling hits", ">origin requests", ">origin bytes", ">moved bytes", ">messages",
		">message bytes")
	for i, w := range r.Ways {
		messages, bytes := "-", "-"
		if w.MessageBytes > 0 {
			messages, bytes = table.Count(w.Messages), table.Bytes(int64(w.MessageBytes))
		}
		t.Row(r.title(i), table.Count(w.Own), table.Count(w.Sibling), table.Count(w.Origin), table.Bytes(w.OriginBytes),
			table.Bytes(w.MovedBytes), messages, bytes)
	}
	notes := table.New("", "")
	notes.Row("", r.Read)
	notes.Row("", r.answer())
	text := notes.Text("") + "\n" + t.Text("")
	notes = table.New("", "")
	for _, n := range r.notes() {
		notes.Row("", n)
	}
	return text + notes.Text("")
}

// compare runs plan --trace.
func (c *planCommand) compare(e *environment) error {
	r, err := c.replay(e)
	if err != nil {
		return err
	}
	return show(e, c.JSON, r, (*compared).text)
}
