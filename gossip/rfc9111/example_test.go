package rfc9111_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A cache stores a response, and decides at each request how to use it.
func Example() {
	arrived := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	header := http.Header{"Cache-Control": {"max-age=60"}, "Etag": {`"v1"`}}
	response := rfc9111.NewResponse(http.StatusOK, header, 0, arrived)
	fmt.Println("store it:", response.Storable(nil, false))

	request := rfc9111.RequestDirectives(http.Header{})
	for _, now := range []time.Time{arrived.Add(30 * time.Second), arrived.Add(90 * time.Second)} {
		switch use, reason := response.Reuse(&request, response.Age(now.Sub(arrived))); use {
		case rfc9111.ServeFresh:
			fmt.Println("serve it")
		case rfc9111.Validate:
			fmt.Println("validate it:", reason, response.Conditions())
		}
	}
	// Output:
	// store it: true
	// serve it
	// validate it: stale map[If-None-Match:["v1"]]
}

// A part of a stored response of 1,000 bytes.
func ExampleResponse_PartFor() {
	response := rfc9111.NewResponse(http.StatusOK, http.Header{}, 0, time.Now())
	request := &http.Request{Method: http.MethodGet, Header: http.Header{"Range": {"bytes=-100"}}}
	part := response.PartFor(request, 1000)
	fmt.Println(part.Status, part.Offset, part.Length, part.ContentRange)
	// Output: 206 900 100 bytes 900-999/1000
}

// Responses that vary have an identity for each variant.
func ExampleIdentity() {
	fields := rfc9111.VaryFields(http.Header{"Vary": {"accept-encoding"}})
	fmt.Println(rfc9111.Identity("http://example.com/", fields, http.Header{"Accept-Encoding": {"GZIP, br;q=1"}}))
	// Output:
	// GET http://example.com/
	// Accept-Encoding:br,gzip
}

// The status of the cache nearest to the client.
func ExampleLastStatus() {
	h := http.Header{"Cache-Status": {"cdn; fwd=miss, peer-1; hit; ttl=30"}}
	status, _ := rfc9111.LastStatus(h)
	fmt.Println(status.Cache, status.Hit, status.TTL)
	// Output: peer-1 true 30s
}
