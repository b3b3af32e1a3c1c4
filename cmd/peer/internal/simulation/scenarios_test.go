package simulation

import "math/rand/v2"

// These functions add situations to a schedule that rarely occur by chance.

// writeWithin adds a write to a URL while an answer for it is under way.
func (s *schedule) writeWithin(rng *rand.Rand, url int) {
	r := request{At: rng.IntN(s.Seconds * 1000), Node: rng.IntN(s.Peers), URL: url, Kind: []string{"get", "no-cache"}[rng.IntN(2)]}
	s.Faults = append(s.Faults, fault{Kind: []string{"slow", "late"}[rng.IntN(2)], At: r.At, For: 500 + rng.IntN(2000), URL: url, N: int64(rng.IntN(2)), To: theOrigin})
	for _, next := range []struct {
		kind  string
		after int
	}{{r.Kind, 1}, {"post", 50 + rng.IntN(1000)}, {"get", rng.IntN(3000)}, {"get", rng.IntN(10_000)}} {
		r.Kind, r.At = next.kind, r.At+next.after
		s.Requests = append(s.Requests, r)
	}
}

// threeSources adds a URL without other requests, whose body breaks off at a sibling
// while another sibling has an older version of it and the origin has the same. Only the last bytes
// of the versions differ.
func (s *schedule) threeSources(rng *rand.Rand) {
	url := hugeURL + s.First
	s.Extra = append(s.Extra, url)
	older, newer, asker := 0, 1, 2
	at := rng.IntN(s.Seconds * 1000)
	for _, r := range []request{{At: 0, Node: older, Kind: "get"}, {At: 600, Node: newer, Kind: "no-cache"}, {At: 4000, Node: asker, Kind: "get"}} {
		r.At, r.URL = r.At+at, url
		s.Requests = append(s.Requests, r)
	}
	for range 3 { // after as many the length is the same again
		s.Faults = append(s.Faults, fault{Kind: "change-one", At: at + 300, URL: url, To: theOrigin})
	}
	for _, from := range []int{older, newer} {
		s.Faults = append(s.Faults, fault{Kind: "reset", At: at + 3999, Node: from, To: asker, N: 330_000 + rng.Int64N(60_000)}) // 256 KiB are lost on their way
	}
}

// staleCopy adds a URL without other requests, whose copy is validated at an origin that each time
// answers with the whole and breaks off, sometimes with another version.
func (s *schedule) staleCopy(rng *rand.Rand) {
	url := goneURL + s.First
	s.Extra = append(s.Extra, url)
	at, node := rng.IntN(s.Seconds*1000), rng.IntN(s.Peers)
	s.Faults = append(s.Faults, fault{Kind: "stubborn", At: at + 3000, For: 20_000, URL: url, To: theOrigin, N: []int64{0, 1, 65_536, 150_000}[rng.IntN(4)]})
	if rng.IntN(4) == 0 {
		s.Faults = append(s.Faults, fault{Kind: "change-one", At: at + 2000, URL: url, To: theOrigin})
	}
	for _, r := range []request{{At: at, Node: node}, {At: at + 4000, Node: node}, {At: at + 4000 + rng.IntN(2000), Node: rng.IntN(s.Peers)}} {
		r.URL, r.Kind = url, "get"
		s.Requests = append(s.Requests, r)
	}
}

// crawlingSibling adds a URL without other requests, whose only holder is slow when another peer
// requests it. It sends more than 64 KiB a second: at less than a block a second it would stall,
// since siblings' blocks are checked whole.
func (s *schedule) crawlingSibling(rng *rand.Rand) {
	url := longURL + s.First
	s.Extra = append(s.Extra, url)
	at, holder := rng.IntN(s.Seconds*1000), rng.IntN(s.Peers)
	asker := (holder + 1 + rng.IntN(s.Peers-1)) % s.Peers
	s.Store = max(s.Store, 3<<20) // which takes objects of a quarter
	s.Faults = append(s.Faults, fault{Kind: "crawl", At: at + 5000, For: 15_000, Node: holder, N: 165_000 + rng.Int64N(70_000)})
	for _, r := range []request{{At: at, Node: holder}, {At: at + 5500, Node: asker}} {
		r.URL, r.Kind = url, "get"
		s.Requests = append(s.Requests, r)
	}
}

// crawlingRescue adds a URL without other requests and with two holders: the body of one
// breaks off, the other is slow. Without a validator the slow one must send the body from its
// beginning to be compared, which takes longer than the origin would.
func (s *schedule) crawlingRescue(rng *rand.Rand) {
	url := dullURL + s.First
	s.Extra = append(s.Extra, url)
	at := rng.IntN(s.Seconds * 1000)
	breaks, crawls, asker := 0, 1, 2
	s.Faults = append(s.Faults,
		fault{Kind: "crawl", At: at + 6000, For: 30_000, Node: crawls, N: 60_000 + rng.Int64N(60_000)},
		fault{Kind: "reset", At: at + 6000, Node: breaks, To: asker, N: 330_000 + rng.Int64N(60_000)}) // 256 KiB are lost on their way
	for _, r := range []request{{At: 0, Node: breaks}, {At: 1000, Node: crawls}, {At: 6500, Node: asker}} {
		r.At, r.URL, r.Kind = r.At+at, url, "get"
		s.Requests = append(s.Requests, r)
	}
}

// lateOrigin adds a URL without other requests, whose copy is stale when it is requested
// again, while the origin takes longer to answer than any client waits.
func (s *schedule) lateOrigin(rng *rand.Rand) {
	url := lateURL + s.First
	s.Extra = append(s.Extra, url)
	at, node := rng.IntN(s.Seconds*1000), rng.IntN(s.Peers)
	for range 2 {
		s.Faults = append(s.Faults, fault{Kind: "late", At: at + 10_900, For: 200_000, URL: url, To: theOrigin})
	}
	for _, after := range []int{0, 11_000, 11_000 + rng.IntN(5000)} {
		s.Requests = append(s.Requests, request{At: at + after, Node: node, URL: url, Kind: "get"})
	}
}

// partsOfLarge adds a URL without other requests, of which clients want parts so far from its
// beginning that only the parts are requested, from the origin or from a sibling that has the whole.
// The source of a part breaks off or is slow.
func (s *schedule) partsOfLarge(rng *rand.Rand) {
	url := deepURL + s.First
	s.Extra = append(s.Extra, url)
	s.Store = max(s.Store, 8<<20) // which takes objects of a quarter
	at, holder := rng.IntN(s.Seconds*1000), rng.IntN(s.Peers)
	if rng.IntN(2) == 0 {
		s.Requests = append(s.Requests, request{At: at, Node: holder, URL: url, Kind: "get"})
	}
	for range 1 + rng.IntN(3) {
		at += 3000 + rng.IntN(4000)
		r := request{At: at, Node: (holder + 1 + rng.IntN(s.Peers-1)) % s.Peers, URL: url, Kind: "part", N: 1_100_000 + rng.Int64N(100_000), Last: 1_500_000 + rng.Int64N(100_000)}
		s.Requests = append(s.Requests, r)
		f := fault{At: r.At - 100, URL: url, To: theOrigin, N: rng.Int64N(400_000), For: 500 + rng.IntN(5000)}
		switch rng.IntN(4) {
		case 0:
			f.Kind, f.Node, f.To = "reset", holder, r.Node
		case 1:
			f.Kind, f.Node, f.To, f.For, f.N = "crawl", holder, 0, 15_000, 70_000+rng.Int64N(140_000)
		default:
			f.Kind = []string{"cut", "cut", "origin-reset", "stall", "slow", "late", "change-one"}[rng.IntN(7)]
		}
		s.Faults = append(s.Faults, f)
	}
}

// slicedPages adds large pages, which are kept in slices also when they are requested whole. Several peers are
// asked for them and for parts over the edge of a slice, while the pages change, are purged, and sources break off.
func (s *schedule) slicedPages(rng *rand.Rand) {
	s.Sites, s.Slices, s.Store = true, 1<<20+1, max(s.Store, 8<<20)
	for i := range 2 {
		url := deepURL + s.First + 1 + i
		s.Extra = append(s.Extra, url)
		at := rng.IntN(s.Seconds * 1000)
		for range 4 + rng.IntN(6) {
			r := request{At: at, Node: rng.IntN(s.Peers), URL: url, Kind: "get"}
			if rng.IntN(2) == 0 {
				r.Kind, r.N, r.Last = "part", rng.Int64N(1<<20), 1<<20-1+rng.Int64N(600_000)
			}
			s.Requests = append(s.Requests, r)
			if rng.IntN(2) == 0 {
				f := fault{At: at - 50, URL: url, To: theOrigin, Node: r.Node, N: rng.Int64N(700_000), For: 500 + rng.IntN(5000)}
				f.Kind = []string{"cut", "origin-reset", "stall", "slow", "late", "change-one", "purge", "purge-everywhere"}[rng.IntN(8)]
				s.Faults = append(s.Faults, f)
			}
			at += rng.IntN(3000)
		}
	}
}
