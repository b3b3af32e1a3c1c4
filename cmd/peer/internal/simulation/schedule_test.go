package simulation

import "math/rand/v2"

// A schedule is a run as data: the requests of clients and the faults. Everything
// else follows from it, from the seed of the network and from the Go scheduler.
type schedule struct {
	Seed    uint64  `json:"seed"`
	Peers   int     `json:"peers"`
	First   int     `json:"first"` // URL: what pages there are follows from their numbers
	URLs    int     `json:"urls"`
	Extra   []int   `json:"extra,omitempty"` // URLs besides
	Seconds int     `json:"seconds"`         // under load
	Store   int64   `json:"store"`           // bytes
	Memory  int64   `json:"memory"`          // bytes
	Publish int     `json:"publish"`         // milliseconds; 0 = the default
	Objects uint64  `json:"objects"`         // that digests are planned for
	False   float64 `json:"false"`           // rate of false positives that they are planned for

	Limit   int64 `json:"limit,omitempty"`   // bytes of memory that each peer's process may take; 0 = without limit
	Sites   bool  `json:"sites,omitempty"`   // there are two origins, each of its own host
	Coding  bool  `json:"coding,omitempty"`  // peers compress, but for that all answers are of a type that is not worth it; some clients accept it
	Slices  int64 `json:"slices,omitempty"`  // bytes from which pages are kept in slices; 0 = the default
	Given   int   `json:"given,omitempty"`   // seconds for which what a sibling gave is served; 0 = without limit
	Compare int   `json:"compare,omitempty"` // one in so many answers of siblings is compared with the origin's; 0 = none

	Faults   []fault   `json:"faults"`
	Requests []request `json:"requests"`
}

// A fault begins At and lasts For, in milliseconds. The meaning of N and P depends on its kind.
type fault struct {
	Kind string  `json:"kind"`
	At   int     `json:"at"`
	For  int     `json:"for,omitempty"`
	Node int     `json:"node"`          // whose
	To   int     `json:"to,omitempty"`  // the other end of a link: a node, or theOrigin
	URL  int     `json:"url,omitempty"` // of an origin's answer
	N    int64   `json:"n,omitempty"`
	P    float64 `json:"p,omitempty"`
	Soft bool    `json:"soft,omitempty"` // of a purge
}

// A request is one of a client.
type request struct {
	At   int    `json:"at"` // milliseconds
	Node int    `json:"node"`
	URL  int    `json:"url"`
	Kind string `json:"kind"`
	N    int64  `json:"n,omitempty"`    // bytes after which the client changes its mind, or the range's first
	Last int64  `json:"last,omitempty"` // of a part's bytes, N being the first
	Sort int    `json:"sort,omitempty"`

	Pause int64 `json:"pause,omitempty"` // milliseconds between what one of churn asks for
}

const theOrigin = -1

// The kinds of faults, and how often each is drawn. A fault of an origin's answer affects only the
// next answer for its URL.
var faultKinds = []struct {
	kind   string
	weight int
}{
	// The network between peers.
	{"loss", 3}, {"partition", 2}, {"crawl", 3}, {"reset", 5},
	// Hosts.
	{"freeze", 4}, {"kill", 2}, {"power-cut", 2}, {"restart", 2}, {"empty", 1},
	// The origin: all of it for a while, or one answer.
	{"origin-down", 1}, {"origin-hang", 1}, {"origin-error", 1}, {"origin-unreachable", 1},
	{"stall", 6}, {"cut", 5}, {"origin-reset", 4}, {"lie", 2}, {"slow", 3}, {"late", 3}, {"change", 2},
	// The disk of a node.
	{"rot", 4}, {"truncate", 3}, {"remove", 1}, {"disk-read", 2}, {"disk-write", 2}, {"disk-flip", 3}, {"disk-full", 2}, {"disk-any", 1},
	// The wall clock of a node.
	{"clock", 5},
	// Orders of the operator.
	{"purge", 3}, {"purge-everywhere", 2},
}

var requestKinds = []struct {
	kind   string
	weight int
}{
	{"get", 120}, {"head", 4}, {"range", 4}, {"no-cache", 4}, {"conditional", 5}, {"only-if-cached", 2}, {"post", 5},
	{"slow", 5}, {"stop", 2}, {"leave", 6}, {"post-stop", 1},
}

// generate draws a schedule.
func generate(seed uint64) schedule {
	rng := rand.New(rand.NewPCG(seed, 0x73696d))
	s := schedule{
		Seed: seed, Peers: 2 + rng.IntN(3), First: int(seed % 1000 * 100), URLs: 20 + rng.IntN(60), Seconds: 20 + rng.IntN(30),
		Store: int64(2+rng.IntN(6)) << 20, Memory: []int64{0, 64 << 10, 1 << 20}[rng.IntN(3)],
		Publish: []int{0, 0, 500, 3000}[rng.IntN(4)], Objects: 200, False: 0.01,
		Coding: seed%11 == 0 || seed%11 == 8 || seed%11 == 10,
	}
	if seed%churns == 100 {
		return churning(s)
	}
	end := s.Seconds * 1000
	for range rng.IntN(12) {
		f := fault{Kind: draw(rng, faultKinds), At: rng.IntN(end), For: 500 + rng.IntN(1+end/3), Node: rng.IntN(s.Peers),
			To: rng.IntN(s.Peers), URL: s.First + zipf(rng, s.URLs), N: []int64{0, 1, 100, 4096, 70000, 200000}[rng.IntN(6)]}
		f.P = []float64{0.02, 0.1, 0.3}[rng.IntN(3)]
		if f.Kind == "clock" { // by seconds, an hour or a day, either way
			f.N = []int64{-86_400_000, -3_600_000, -20_000, -8000, 8000, 20_000, 3_600_000, 86_400_000}[rng.IntN(8)]
		}
		if f.Kind == "late" && rng.IntN(3) == 0 {
			f.For = 200_000 // longer than anybody waits
		}
		if f.To == f.Node {
			f.To = theOrigin
		}
		s.Faults = append(s.Faults, f)
	}
	rate := 5 + rng.IntN(20)
	for i := range rate * s.Seconds {
		r := request{At: i*1000/rate + rng.IntN(1000/rate), Node: rng.IntN(s.Peers), URL: s.First + zipf(rng, s.URLs),
			Kind: draw(rng, requestKinds), N: int64(rng.IntN(200_000)), Sort: rng.IntN(3)}
		s.Requests = append(s.Requests, r)
		if rng.IntN(20) == 0 { // a crowd: others ask for the same at about the same time
			for range rng.IntN(6) {
				r.Node, r.At, r.Kind = rng.IntN(s.Peers), r.At+rng.IntN(5)*rng.IntN(400), "get"
				s.Requests = append(s.Requests, r)
			}
		}
	}
	for range rng.IntN(3) {
		s.writeWithin(rng, s.First+zipf(rng, s.URLs))
	}
	if s.Peers > 2 && rng.IntN(2) == 0 {
		s.threeSources(rng)
	}
	if rng.IntN(3) == 0 {
		s.staleCopy(rng)
	}
	if rng.IntN(6) == 0 {
		s.crawlingSibling(rng)
	}
	if s.Peers > 2 && rng.IntN(6) == 0 {
		s.crawlingRescue(rng)
	}
	if rng.IntN(4) == 0 {
		s.partsOfLarge(rng)
	}
	if rng.IntN(8) == 0 {
		s.lateOrigin(rng)
	}
	s.adversary()
	return s
}

// churns: one in so many seeds turns over a store of some ten thousand objects, which takes as long
// as fifty others.
const churns = 250

// churning makes a schedule of nothing but new URLs, far more than the store has room for:
// as many as the digest is planned for, at tinyOnDisk bytes each. Half of the time few of them come between two publications, so that the digest's tables
// stay as small as they are planned: what has left and was not published yet needs room.
func churning(s schedule) schedule {
	const (
		clients, each = 8, 9_000
		tinyOnDisk    = 512 // with the room that the store keeps free
	)
	pause := int64(0)
	s.Objects = 8000 + 2000*(s.Seed/churns%5)
	if s.Seed/churns%2 == 1 {
		s.Objects, s.False, s.Publish, pause = 2060, 0.003, 500, 40
	}
	s.Peers, s.Store, s.Memory = 2, int64(s.Objects)*tinyOnDisk, 0
	for i := range clients {
		s.Requests = append(s.Requests, request{Kind: "churn", URL: tinyURL + i*each, N: each, Pause: pause})
	}
	return s
}

func draw(rng *rand.Rand, from []struct {
	kind   string
	weight int
}) string {
	all := 0
	for _, k := range from {
		all += k.weight
	}
	at := rng.IntN(all)
	for _, k := range from {
		if at -= k.weight; at < 0 {
			return k.kind
		}
	}
	panic("unreachable")
}

// zipf draws a number below n, small ones most often.
func zipf(rng *rand.Rand, n int) int {
	f := rng.Float64()
	return int(float64(n) * f * f)
}
