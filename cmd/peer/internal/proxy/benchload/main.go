// Command benchload sends requests to a server in an open loop, as bench-quiet.sh wants them: they come when they
// come, whatever the answers to those before take, with pauses that are distributed exponentially. The same pauses each
// time.
//
//	benchload [-c CONNECTIONS] [-n | -among N [-seed S]] -s SECONDS RATE URL
//
// With -n each request is for another object: a number is appended to the URL, which begins with that of -first. With
// -among it is one of 1 to N, as by Zipf's law with exponent 1. It prints how many requests there were, how many of
// them failed, and the median and the 99th percentile of their times in ms.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

func main() {
	conns, fresh := flag.Int("c", 8, "connections that are kept"), flag.Bool("n", false, "another object each time")
	seconds, first := flag.Float64("s", 10, "seconds"), flag.Int("first", 100, "number of the first object")
	among, seed := flag.Float64("among", 0, "one of so many objects each time"), flag.Uint64("seed", 1, "of what is drawn")
	flag.Parse()
	rate, err := strconv.ParseFloat(flag.Arg(0), 64)
	if err != nil || flag.NArg() != 2 {
		flag.Usage()
		log.Fatal(err)
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: *conns, MaxConnsPerHost: *conns, DisableCompression: true}}
	random := rand.New(rand.NewPCG(*seed, 59))
	var all sync.WaitGroup
	var mu sync.Mutex
	var times []time.Duration
	failed, begin := 0, time.Now()
	at := begin
	for n := *first; ; n++ {
		at = at.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
		if at.Sub(begin).Seconds() > *seconds {
			break
		}
		time.Sleep(time.Until(at))
		due, url := at, flag.Arg(1)
		if *fresh {
			url += strconv.Itoa(n)
		} else if *among > 0 {
			url += strconv.Itoa(int(math.Pow(*among, random.Float64())))
		}
		all.Go(func() {
			resp, err := client.Get(url)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			if times = append(times, time.Since(due)); err != nil || resp.StatusCode != http.StatusOK {
				failed++
			}
		})
	}
	all.Wait()
	time.Sleep(time.Until(begin.Add(time.Duration(*seconds * float64(time.Second)))))
	slices.Sort(times)
	of := func(part float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return times[int(part*float64(len(times)-1))].Seconds() * 1e3
	}
	fmt.Printf("%d %d %.2f %.2f\n", len(times), failed, of(0.5), of(0.99))
}
