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
)

// TestMutatedRequestsAtOnce sends mutated requests in two ways: each on a connection of its own, where net/http's
// server reads it, and on one whose requests are answered before the server reads them, where they are hits and plain.
// Both must get the same answer, and a plain request after it its own.
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
		r.h2 = false
		addr := cache.addr(a.place, false)
		r.exchange(addr) // which may be stored
		want := r.exchange(addr)
		got, after := r.afterPlain(t, addr, a.place)
		if len(r.bytes()) > 0 && strings.Contains(strings.Join(got.header["Cache-Status"], ""), "; hit") {
			hits++
		}
		ttl := func(w wireAnswer) wireAnswer { // what depends on the time of a request
			w.header.Del("Age")
			w.header.Del("Date")
			status, _, _ := strings.Cut(w.header.Get("Cache-Status"), "; ttl=")
			w.header.Set("Cache-Status", status)
			return w
		}
		if want.status != 0 && got.status != 0 {
			want, got = ttl(want), ttl(got)
		}
		if what, detail := got.difference(want, nil); what != "" && strings.Join(got.header["Cache-Status"], "") != "" {
			t.Errorf("mutation %d (%s): %s: %s\n%s", n, a.kinds(), what, detail, r)
		}
		if g, w := got.header.Get("Cache-Status"), want.header.Get("Cache-Status"); g != w {
			t.Errorf("mutation %d (%s): %q, by the server %q\n%s", n, a.kinds(), g, w, r)
		}
		if after != "" {
			t.Errorf("mutation %d (%s): the next request on its connection: %s\n%s", n, a.kinds(), after, r)
		}
	}
	t.Logf("%d requests, %d of them hits", count, hits)
	if hits < count/5 {
		t.Errorf("only %d of %d requests are hits: little is compared", hits, count)
	}
}

// afterPlain sends the request on a connection that has had plain requests, and another plain one after it.
// after says what is wrong with the answer to that; "" = nothing, or the connection is closed.
func (r *wireRequest) afterPlain(t *testing.T, addr string, place *place) (got wireAnswer, after string) {
	plain := victim{place.bases()[0], "n=plain"}.plain(place)
	plain.fields = plain.fields[:len(plain.fields)-1] // without Connection: close
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
			return wireAnswer{body: err.Error()}
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return wireAnswer{answer.StatusCode, answer.Header, err.Error()}
		}
		return wireAnswer{answer.StatusCode, answer.Header, string(body)}
	}
	var first wireAnswer
	for range 4 {
		c.Write(plain.bytes())
		if first = read("GET"); first.status == 0 {
			t.Fatalf("a plain request: %s", first.body)
		}
	}
	go c.Write(r.bytes())
	if got = read(r.method); got.status == 0 || got.header.Get("Connection") == "close" || got.status == http.StatusSwitchingProtocols {
		return got, ""
	}
	c.Write(plain.bytes())
	last := read("GET")
	if last.status == 0 {
		return got, ""
	}
	_, after = last.difference(first, nil)
	return got, after
}
