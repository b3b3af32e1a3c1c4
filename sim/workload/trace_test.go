package workload

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestAssignFollowsClients(t *testing.T) {
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "%d client%d /k 1\n", i, i%300)
	}
	trace, err := Read("t", strings.NewReader(text.String()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	proxies, again := trace.Assign(3, 1), trace.Assign(3, 2)
	if !reflect.DeepEqual(proxies, again) {
		t.Error("Assign of named clients depends on the seed")
	}
	used := make([]int, 3)
	for i, p := range proxies {
		if p != proxies[i%300] {
			t.Fatalf("client%d goes to %d and %d", i%300, proxies[i%300], p)
		}
		used[p]++
	}
	for p, n := range used { // 100 clients each, standard deviation 8.2 of them, 10 requests a client
		if n < 600 || n > 1400 {
			t.Errorf("proxy %d got %d of 3000 requests", p, n)
		}
	}
	if n := trace.Clients(); n != 300 {
		t.Errorf("Clients() = %d, want 300", n)
	}
}

func TestAssignSpreadsAnonymousRequests(t *testing.T) {
	trace := Synthetic(Model{Requests: 9000, Objects: 10, Seed: 7})
	proxies := trace.Assign(3, 1)
	if reflect.DeepEqual(proxies, trace.Assign(3, 2)) || !reflect.DeepEqual(proxies, trace.Assign(3, 1)) {
		t.Error("Assign must depend only on the seed for unknown clients")
	}
	used := make([]int, 3)
	for _, p := range proxies {
		used[p]++
	}
	for p, n := range used { // expected 3000, standard deviation 45
		if math.Abs(float64(n-3000)) > 5*45 {
			t.Errorf("proxy %d got %d of 9000 requests, want 3000 within five standard deviations", p, n)
		}
	}
	if trace.Clients() != 0 {
		t.Error("unknown clients are counted")
	}
}

func TestHeadKeepsWhatIsAskedFor(t *testing.T) {
	trace, err := Read("t", strings.NewReader(small), Options{Targets: true})
	if err != nil {
		t.Fatal(err)
	}
	head := trace.Head(2)
	if want := map[string]int64{"/a?x=1": 300, "/b": 0}; len(head.Requests) != 2 || !reflect.DeepEqual(head.Sizes, want) {
		t.Errorf("Head(2) = %+v, want two requests of %v", head, want)
	}
	for _, n := range []int{0, -1, 5, 6} {
		if trace.Head(n) != trace {
			t.Errorf("Head(%d) is not the trace", n)
		}
	}
}

func TestFillSizes(t *testing.T) {
	bare, _ := Read("t", strings.NewReader("1 - a 0\n2 - b 0\n"), Options{})
	if bare.FillSizes(); bare.Sizes["a"] != SizeOf("a") || bare.Bytes() != SizeOf("a")+SizeOf("b") {
		t.Errorf("FillSizes left %v", bare.Sizes)
	}
	sized, _ := Read("t", strings.NewReader("1 - a 0\n2 - b 3\n"), Options{})
	if sized.FillSizes(); sized.Bytes() != 3 {
		t.Errorf("FillSizes changed a trace that has sizes: %v", sized.Sizes)
	}
}

// The shares of the first targets must be those of the Zipf law.
func TestSyntheticFollowsZipf(t *testing.T) {
	w := Model{Requests: 100_000, Objects: 1000, Exponent: 0.9, Seed: 1}
	trace := Synthetic(w)
	if !reflect.DeepEqual(trace, Synthetic(w)) {
		t.Fatal("two traces of one seed differ")
	}
	sum := 0.0
	for i := 1; i <= w.Objects; i++ {
		sum += math.Pow(float64(i), -w.Exponent)
	}
	count := make(map[string]int)
	for _, r := range trace.Requests {
		count[r.Key]++
	}
	for _, i := range []int{1, 2, 10, 100} {
		p := math.Pow(float64(i), -w.Exponent) / sum
		want := p * float64(w.Requests)
		deviation := math.Sqrt(want * (1 - p))
		if got := float64(count[fmt.Sprintf("/object/%d", i)]); math.Abs(got-want) > 5*deviation {
			t.Errorf("target %d occurs %v times, want %.0f within five times %.0f", i, got, want, deviation)
		}
	}
}

func TestSizeOf(t *testing.T) {
	octaves, sum := make(map[int]int), int64(0)
	const n = 70_000
	for i := range n {
		size := SizeOf(fmt.Sprintf("/object/%d", i))
		if size < 1<<10 || size >= 1<<17 {
			t.Fatalf("SizeOf = %d, want 1 KiB to 128 KiB", size)
		}
		octaves[int(math.Log2(float64(size)))]++
		sum += size
	}
	for octave, got := range octaves {
		if deviation := math.Sqrt(n * (1. / 7) * (6. / 7)); math.Abs(float64(got-n/7)) > 5*deviation {
			t.Errorf("%d sizes of 2^%d bytes and more, want %d within five times %.0f", got, octave, n/7, deviation)
		}
	}
	if mean := sum / n; mean < 27_000 || mean > 29_000 {
		t.Errorf("mean size %d", mean)
	}
}
