//go:build unix

package main

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutation"
)

// TestMutatedRequestsAtOnce sends mutated requests in two ways: on a connection where net/http's server reads
// all, and on one whose requests are answered before the server reads them, where they are hits and plain. Both must get the same answer, and a plain request after it its own.
func TestMutatedRequestsAtOnce(t *testing.T) {
	places := poisonPlaces(t, false, true)
	cache := poisonPeers(t, places)
	few, hits := 300, 0
	if testing.Short() {
		few = 100
	}
	count := cmp.Or(*mutations, few)
	p := &poisoning{places: places, cache: cache}
	for n := *mutationFrom; n < *mutationFrom+count; n++ {
		a := newAttempt(*mutationSeed, n, places)
		r := a.request(p.mark())
		r.H2 = false
		wrong := ""
		for range 3 { // until what the request before has stored is there
			var hit bool
			if wrong, hit = r.bothWays(t, cache.addr(a.place, false), a.place); wrong == "" {
				if hit {
					hits++
				}
				break
			}
		}
		if wrong != "" {
			t.Errorf("mutation %d (%s): %s\n%s", n, a.Kinds(), wrong, r)
		}
	}
	t.Logf("%d requests, %d of them hits", count, hits)
	if hits < count/5 {
		t.Errorf("only %d of %d requests are hits: little is compared", hits, count)
	}
}

// bothWays sends the request in both ways, and says how the answers differ; "" = not at all.
func (r *wireRequest) bothWays(t *testing.T, addr string, place *place) (wrong string, hit bool) {
	r.exchange(addr)                                                    // which may be stored
	want, _ := r.afterAnother(t, addr, place, [2]string{"Pragma", "x"}) // from then on the server reads all
	got, after := r.afterAnother(t, addr, place)
	status := func(w wireAnswer) string {
		text, _, _ := strings.Cut(w.header.Get("Cache-Status"), "; ttl=")
		return text
	}
	if what, detail := normal(got).difference(normal(want), []string{"Content-Type"}); what != "" {
		return what + ": " + detail, false
	}
	if g, w := status(got), status(want); g != w {
		return g + ", by the server " + w, false
	}
	if after != "" {
		return "the next request on its connection: " + after, false
	}
	return "", strings.Contains(status(got), "; hit")
}

// normal replaces the boundary of an answer with several ranges, which is random.
func normal(w wireAnswer) wireAnswer {
	if _, boundary, ok := strings.Cut(w.header.Get("Content-Type"), "multipart/byteranges; boundary="); ok {
		w.body = strings.ReplaceAll(w.body, boundary, "")
	}
	return w
}

// afterAnother sends the request on a connection that has had others, plain ones but for some fields, and another of
// these after it. after says what is wrong with the answer to that; "" = nothing, or the connection is closed.
func (r *wireRequest) afterAnother(t *testing.T, addr string, place *place, fields ...[2]string) (got wireAnswer, after string) {
	other := plain(mutation.Victim{Path: place.bases()[0], Query: "n=plain"}, place)
	other.Fields = append(other.Fields[:len(other.Fields)-1], fields...) // without Connection: close
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	read := func(method string) wireAnswer {
		c.SetDeadline(time.Now().Add(r.limit()))
		answer, err := http.ReadResponse(in, &http.Request{Method: strings.ToUpper(method)})
		for err == nil && answer.StatusCode/100 == 1 && answer.StatusCode != http.StatusSwitchingProtocols {
			answer, err = http.ReadResponse(in, &http.Request{Method: strings.ToUpper(method)})
		}
		if err != nil {
			return wireAnswer{}
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return wireAnswer{answer.StatusCode, answer.Header, "an answer that is cut"}
		}
		return wireAnswer{answer.StatusCode, answer.Header, string(body)}
	}
	var first wireAnswer
	for range 4 {
		c.Write(other.Bytes())
		if first = read("GET"); first.status == 0 {
			t.Fatalf("a plain request: %s", first.body)
		}
	}
	go c.Write(r.Bytes())
	if got = read(r.Method); got.status == 0 || got.header.Get("Connection") == "close" || got.status == http.StatusSwitchingProtocols {
		return got, ""
	}
	c.Write(other.Bytes())
	last := read("GET")
	if last.status == 0 {
		return got, ""
	}
	_, after = last.difference(first, nil)
	return got, after
}
