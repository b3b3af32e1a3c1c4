// Package mutation makes requests by which one client might decide what others get: of the kinds that caches,
// origins and frameworks understand differently. Tests send them to a peer, and then plain ones.
//
// Start from [New]. A mutation follows from its seed and number, so that each can be made again.
package mutation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// An Attempt is one mutated request, and what other clients ask for afterwards.
type Attempt struct {
	Place *Place
	Base  string // the path that it is about
	Parts []Part // the mutations
	H2    bool
	Old   bool // HTTP/1.0

	// Set by Request.
	Mark string // in the query of all its requests: no other attempt's answers are theirs; "" = none
	// Victims are the requests of other clients whose answers must be the origin's. Controls are
	// those whose answers must be the ones that the same cache gives where no mutated request came
	// before: with a spelling that the cache may refuse or send on in another form.
	Victims, Controls []Victim
}

// A Place is what requests are about: a host, and paths below one.
type Place struct {
	Name  string // the host
	Under string // of all paths
	Bases []string
	Share int // of the attempts
}

// A Victim is a plain request for a path and a query.
type Victim struct{ Path, Query string }

// A Part is a mutation: its kind, and what it does to a request.
type Part struct {
	Kind  string
	apply func(*Attempt, *Request)
}

// spelling writes the path in a way that some server takes for the same one, or for another.
func spelling(rng *rand.Rand) func(*Attempt, *Request) {
	how, letter, encodedSlash, up := rng.IntN(34), rng.IntN(100), one(rng, "%2f", "%2F"),
		one(rng, "..", "%2e%2e", ".%2E", "%2e.")
	before := one(rng, "/static", "/static", "/x", "/static/x.css", "/account")
	cookie := rng.IntN(4) > 0
	return func(a *Attempt, r *Request) {
		under, path := a.Place.Under, strings.TrimPrefix(a.Base, a.Place.Under)
		i := 1 + letter%max(1, len(path)-1)
		hex := fmt.Sprintf("%%%02x", path[min(i, len(path)-1)])
		depth := strings.Repeat(up+"/", strings.Count(before, "/"))
		spelled := []string{
			before + "/" + depth + path[1:],
			before + "/" + strings.ReplaceAll(depth, "/", encodedSlash) + path[1:],
			before + encodedSlash + strings.ReplaceAll(depth, "/", encodedSlash) + path[1:],
			"/x/" + up + encodedSlash + path[1:] + ".css",
			"/static/" + up + encodedSlash + path[1:] + ";.css",
			path + ".css", path + "/x.css", path + ";x.css", path + "%3bx.css", path + "%3fx.css", path + "%23x.css",
			path + "%00.css", path + "%0a.css", path + "?x.css&", path + "/.", path + "/" + up + "/" + "x.css",
			"/" + path, "//" + path, "/." + path, "/%2e" + path, "/" + up + path, path[:i] + hex +
				path[min(len(path), i+1):], path[:i] + strings.ToUpper(hex) + path[min(len(path), i+1):],
			strings.ToUpper(path), strings.ReplaceAll(path, "/", "\\"), "/static\\" + up + path, "/static/" + up + ";" +
				path, "/static/" + up + ";a=b" + path,
			"/static/%252e%252e%252f" + path[1:], "/static/%c0%ae%c0%ae/" + path[1:], "/static" +
				encodedSlash + up + path,
			"/static/x.css" + encodedSlash + up + encodedSlash + up + path,
			strings.ReplaceAll(path[1:], "/", encodedSlash), path + "%20",
		}[how]
		if !strings.HasPrefix(spelled, "/") && how != 24 {
			spelled = "/" + spelled
		}
		if r.Path = under + spelled; strings.Contains(spelled, "?") {
			r.Path, r.Query = under+path, strings.TrimPrefix(spelled, path+"?")+r.Query
		}
		if cookie {
			r.Set("Cookie", "session=victim")
		}
		a.Controls = append(a.Controls, Victim{r.Path, r.Query})
	}
}

// New returns mutation n of a seed, of one of the places.
func New(seed uint64, n int, places []*Place) *Attempt {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	a := &Attempt{}
	sum := 0
	for _, p := range places {
		sum += p.Share
	}
	for at := rng.IntN(sum); a.Place == nil; places = places[1:] {
		if at -= places[0].Share; at < 0 {
			a.Place = places[0]
		}
	}
	bases := a.Place.Bases
	a.Base = bases[rng.IntN(len(bases))]
	if a.Base == "/big.bin" && rng.IntN(4) > 0 { // which takes long
		a.Base = "/small.txt"
	}
	switch rng.IntN(10) {
	case 0:
		a.Old = true
	case 1, 2, 3:
		a.H2 = true
	}
	sum = 0
	for _, k := range partKinds {
		sum += k.weight
	}
	for i := range []int{1, 1, 1, 2, 2, 3}[rng.IntN(6)] {
		at := rng.IntN(sum)
		apt := ""
		if i == 0 && rng.IntN(2) == 0 {
			apt = a.apt()
		}
		for _, k := range partKinds {
			if at -= k.weight; apt == "" && at < 0 || apt == k.name {
				if apply := k.make(rng); !slices.ContainsFunc(a.Parts, func(p Part) bool { return p.Kind == k.name }) {
					a.Parts = append(a.Parts, Part{k.name, apply})
				}
				break
			}
		}
	}
	return a
}

// apt is the kind of mutation to which the page reacts; "" = any.
func (a *Attempt) apt() string {
	path := strings.TrimPrefix(a.Base, a.Place.Under)
	switch {
	case strings.HasPrefix(path, "/ranged/"):
		return "range"
	case strings.HasPrefix(path, "/account"):
		return "spelling"
	case path == "/badvary":
		return "selecting"
	case path == "/language" || path == "/coded":
		return "accept"
	}
	return ""
}

// Request returns the mutated request with that mark, and sets what comes after it.
func (a *Attempt) Request(mark string) *Request {
	a.Mark, a.Controls = mark, nil
	a.Victims = []Victim{{a.Base, mark}}
	r := &Request{Method: "GET", Version: "HTTP/1.1", Path: a.Base, Query: mark, H2: a.H2}
	if a.Old {
		r.Version = "HTTP/1.0"
	}
	r.Add("Host", a.Place.Name)
	if strings.HasPrefix(strings.TrimPrefix(a.Base, a.Place.Under), "/account") {
		r.Add("Cookie", "session=victim")
	}
	for _, p := range a.Parts {
		p.apply(a, r)
	}
	return r
}

// Kinds names the mutations.
func (a *Attempt) Kinds() string {
	var list []string
	for _, p := range a.Parts {
		list = append(list, p.Kind)
	}
	slices.Sort(list)
	return strings.Join(list, "+")
}
