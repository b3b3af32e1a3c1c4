//go:build unix

package main

import "github.com/summarycache/summarycache/cmd/peer/internal/mutation"

// An attempt is one mutated request, and what other clients ask for afterwards.
type attempt struct {
	*mutation.Attempt
	n     int // of the seed
	place *place
}

// newAttempt is mutation n of a seed.
func newAttempt(seed uint64, n int, places []*place) *attempt {
	list, of := make([]*mutation.Place, len(places)), make(map[*mutation.Place]*place)
	for i, p := range places {
		list[i] = p.mutable()
		of[list[i]] = p
	}
	a := mutation.New(seed, n, list)
	return &attempt{a, n, of[a.Place]}
}

func (p *place) mutable() *mutation.Place {
	return &mutation.Place{Name: p.name, Under: p.under, Bases: p.bases(), Share: p.share}
}

// request returns the mutated request, and sets what comes after it.
func (a *attempt) request(mark string) *wireRequest { return &wireRequest{Request: *a.Request(mark)} }

// plain is the request of another client.
func plain(v mutation.Victim, p *place) *wireRequest {
	return &wireRequest{patient: true, Request: mutation.Request{Method: "GET", Version: "HTTP/1.1", Path: v.Path, Query: v.Query,
		Fields: [][2]string{{"Host", p.name}, {"User-Agent", "plain"}, {"Accept", "*/*"}, {"Connection", "close"}}}}
}
