package simulation

import (
	"math/rand/v2"
	"slices"
)

// adversary adds what clients, members, origins and operators do that is rare, wrong or hostile. It
// draws from a source of its own, so that the rest of a seed's schedule stays as it is. Each seed has a
// few of these.
func (s *schedule) adversary() {
	rng := rand.New(rand.NewPCG(s.Seed, 0x616476))
	for _, add := range []struct {
		one int // in so many seeds
		of  func(*rand.Rand)
	}{
		{2, s.purges}, {2, s.purgedAgain}, {2, s.oddRequests}, {2, s.personalPages}, {3, s.connections},
		{5, s.liar}, {6, s.cold}, {12, s.smallDisk}, {4, s.lateWindows}, {12, s.walk},
	} {
		if rng.IntN(add.one) == 0 {
			add.of(rng)
		}
	}
	if !s.walks() {
		s.shortages()
	}
	slices.SortStableFunc(s.Faults, func(a, b fault) int { return a.At - b.At })
	slices.SortStableFunc(s.Requests, func(a, b request) int { return a.At - b.At })
}

// shortages adds what runs short, what is damaged, mutated requests, and large pages. Its source is another again.
func (s *schedule) shortages() {
	rng := rand.New(rand.NewPCG(s.Seed, 0x73686f))
	for _, add := range []struct {
		one int // in so many seeds
		of  func(*rand.Rand)
	}{{6, s.shortOfMemory}, {5, s.changingRoom}, {5, s.noise}, {4, s.mutatedRequests}, {6, s.slicedPages}} {
		if rng.IntN(add.one) == 0 {
			add.of(rng)
		}
	}
}

// ordinary draws the number of a page that others are asked for, too.
func (s *schedule) ordinary(rng *rand.Rand) int { return s.First + zipf(rng, s.URLs) }

// purges adds purges by tag, and soft ones.
func (s *schedule) purges(rng *rand.Rand) {
	for range 1 + rng.IntN(4) {
		s.Faults = append(s.Faults, fault{
			Kind: []string{"purge", "purge-everywhere", "purge-tag", "purge-tag-everywhere", "purge-tag-everywhere"}[rng.IntN(5)],
			At:   rng.IntN(s.Seconds * 1000), Node: rng.IntN(s.Peers), To: theOrigin, URL: s.ordinary(rng), N: int64(rng.IntN(2)), Soft: rng.IntN(3) == 0,
		})
	}
}

// purgedAgain adds pages that are changed, purged, and asked for again at once, at the same and at
// other peers.
func (s *schedule) purgedAgain(rng *rand.Rand) {
	for range 1 + rng.IntN(3) {
		at, node, url := rng.IntN(s.Seconds*1000), rng.IntN(s.Peers), s.ordinary(rng)
		s.Faults = append(s.Faults,
			fault{Kind: "change-one", At: at + 1900 + rng.IntN(100), URL: url, To: theOrigin},
			fault{Kind: []string{"purge", "purge-everywhere", "purge-tag-everywhere"}[rng.IntN(3)], At: at + 2000, Node: node, To: theOrigin, URL: url, N: int64(rng.IntN(2)), Soft: rng.IntN(4) == 0})
		for range s.Peers {
			s.Requests = append(s.Requests, request{At: at + rng.IntN(1900), Node: rng.IntN(s.Peers), URL: url, Kind: "get"})
		}
		for range 5 {
			s.Requests = append(s.Requests, request{At: at + 2000 + rng.IntN(1000), Node: rng.IntN(s.Peers), URL: url, Kind: "get"})
		}
		s.Requests = append(s.Requests, request{At: at + 6000, Node: rng.IntN(s.Peers), URL: url, Kind: "get"})
	}
}

// oddRequests adds odd requests, and plain ones of other clients afterwards.
func (s *schedule) oddRequests(rng *rand.Rand) {
	for range 4 + rng.IntN(8) {
		r := request{At: rng.IntN(s.Seconds * 1000), Node: rng.IntN(s.Peers), URL: s.ordinary(rng), Kind: "odd", N: int64(rng.IntN(len(oddities)))}
		s.Requests = append(s.Requests, r)
		for _, after := range []int{30 + rng.IntN(100), rng.IntN(1000), 2000 + rng.IntN(6000)} {
			r.Kind, r.N, r.At, r.Node = "get", 0, r.At+after, rng.IntN(s.Peers)
			s.Requests = append(s.Requests, r)
		}
	}
}

// personalPages adds requests with cookies and credentials, and others for the same pages.
func (s *schedule) personalPages(rng *rand.Rand) {
	for range 4 + rng.IntN(6) {
		url := s.ordinary(rng)
		url += (2 - url%4 + 4) % 4 // one that is personal
		if url >= s.First+s.URLs {
			continue
		}
		at := rng.IntN(s.Seconds * 1000)
		for range 5 {
			at += rng.IntN(500)
			s.Requests = append(s.Requests, request{At: at, Node: rng.IntN(s.Peers), URL: url, Kind: []string{"get", "cookie", "authorized"}[rng.IntN(3)], N: rng.Int64N(1_000_000)})
		}
	}
}

// connections adds requests with fields of the connection.
func (s *schedule) connections(rng *rand.Rand) {
	for range 10 {
		s.Requests = append(s.Requests, request{At: rng.IntN(s.Seconds * 1000), Node: rng.IntN(s.Peers), URL: s.ordinary(rng), Kind: "hop"})
	}
}

// liar adds a member that lies for a while, in half of the cases about bodies.
func (s *schedule) liar(rng *rand.Rand) {
	s.Given, s.Compare = 15, []int{0, 1, 4}[rng.IntN(3)]
	s.Faults = append(s.Faults, fault{Kind: "liar", At: rng.IntN(s.Seconds * 300), For: 5000 + rng.IntN(s.Seconds*500), To: theOrigin,
		N: int64(rng.IntN(200)), P: []float64{0.1, 0.3}[rng.IntN(2)]})
}
