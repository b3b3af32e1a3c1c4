package digest

import (
	"math"
	"time"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest/internal/planted"
)

// withHashes returns the best plan with k hashes, or why there is none.
func (g Goal) withHashes(k int) (Design, *GoalError) {
	if g.FalseCandidates > 0 {
		m, ok := fewestBits(g.Objects, k, g.rate())
		if !ok {
			_, possible := Geometry{Bits: maxBits, Hashes: k}.predict(g.Objects)
			return Design{}, &GoalError{"FalseCandidates", g.FalseCandidates, possible * g.others()}
		}
		plan := g.evaluate(m, k)
		plan.Binding = "FalseCandidates"
		if g.pacing() && plan.Threshold > g.leastShare() {
			plan.Binding = "BytesPerSecond"
		}
		return plan, g.exceeded(plan)
	}
	if err := g.exceeded(g.evaluate(1, k)); err != nil {
		return Design{}, err
	}
	// The most bits that the budgets allow: everything grows with them, except
	// that memory falls where a sorted set takes the place of a bitmap.
	bitmap := g.lastBitmap(k)
	var m uint64
	if bitmap < maxBits && g.fits(bitmap+1, k) {
		m = search(bitmap+1, maxBits, func(m uint64) bool { return g.fits(m, k) })
	} else {
		m = search(1, bitmap, func(m uint64) bool { return g.fits(m, k) })
	}
	plan, next := g.evaluate(m, k), g.evaluate(min(m+1, maxBits), k)
	if worst, broken := g.worst(&next); broken {
		plan.Binding = worst.Budget
	}
	return plan, nil
}

func (g Goal) fits(m uint64, k int) bool {
	plan := g.evaluate(m, k)
	_, broken := g.worst(&plan)
	return !broken
}

// lastBitmap returns the largest number of bits at which a bitmap is the better form.
func (g Goal) lastBitmap(k int) uint64 {
	return search(1, maxBits, func(m uint64) bool {
		fill, _ := Geometry{Bits: m, Hashes: k}.predict(g.Objects)
		return dense(m, uint64(math.Round(fill*float64(m))))
	})
}

// hopeless reports whether no filter of k hashes within the budgets has a rate as low as
// f, since the fewest bits for that rate already exceed them in either form.
func (g Goal) hopeless(k int, f float64) bool {
	m, ok := fewestBits(g.Objects, k, min(1, f*(1+1e-9)))
	return !ok || !g.fits(m, k) && !g.fits(min(max(m, g.lastBitmap(k)+1), maxBits), k)
}

// search returns the largest number in [low, high] that fits, given that low does and
// that every number above one that does not fit does not fit either.
func search(low, high uint64, fits func(uint64) bool) uint64 {
	for low < high {
		mid := high - (high-low)/2
		if fits(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// fewestBits returns the smallest m at which n keys with k hashes have a
// false-positive rate of at most f.
func fewestBits(n uint64, k int, f float64) (m uint64, ok bool) {
	rate := func(m uint64) float64 {
		_, rate := Geometry{Bits: m, Hashes: k}.predict(n)
		return rate
	}
	switch {
	case rate(maxBits) > f:
		return 0, false
	case rate(1) <= f:
		return 1, true
	}
	// The asymptotic formula is nearly right.
	low, high := uint64(1), uint64(maxBits)
	guess := -float64(k) * float64(n) / math.Log1p(-math.Pow(f, 1/float64(k)))
	if near := uint64(guess * 0.999999); near > 2 && near-2 < high && rate(near-2) > f {
		low = near - 2
	}
	if near := guess*1.000001 + 50; near < maxBits && rate(uint64(near)) <= f {
		high = uint64(near)
	}
	return search(low, high, func(m uint64) bool { return rate(m) > f }) + 1, true
}

// pacing reports whether the plan must find the threshold.
func (g Goal) pacing() bool {
	return g.Interval == 0 && g.Threshold == 0 && g.BytesPerSecond > 0 && g.Churn > 0 && g.FalseCandidates > 0
}

// Shares that pacing chooses are multiples of 1/shareParts.
const shareParts = 1 << 20

// leastInterval is the shortest interval that pacing chooses: spreading an update takes
// about a second as well.
const leastInterval = time.Second

// leastShare is the share of the objects that is replaced in leastInterval: at least one
// object, since before that nothing has changed.
func (g Goal) leastShare() float64 {
	parts := math.Ceil(shareParts * max(1, g.Churn*leastInterval.Seconds()) / float64(g.Objects))
	return min(max(parts, 1), shareParts) / shareParts
}

// evaluate predicts everything for m bits and k hashes.
func (g Goal) evaluate(m uint64, k int) Design {
	p := Design{Geometry: Geometry{Bits: m, Hashes: k}}
	fill, f := p.Geometry.predict(g.Objects)
	p.FalsePositiveRate, p.FalseCandidates = f, f*g.others()
	ones := uint64(math.Round(fill * float64(m)))
	p.Coding = arith.Choose(m, ones).String()
	form := formFor(m, ones)
	p.MemoryBytes = g.others() * float64(form.bytesFor(ones))
	code := float64(m) * entropy(fill) / 8
	p.SnapshotBytes = code + headBytes(m, k, g.Objects)
	p.SnapshotBound = boundedBytes(m, k, g.Objects, fill, 1-g.SnapshotCertainty)
	g.pace(&p, fill)
	return p
}

// messageBytes is about how many bytes a delta takes besides its sets.
const messageBytes = 36

// About how many bytes an update takes besides its sets, with the headers of IP and UDP.
const (
	carryBytes  = 48   // if it travels in the datagram of its notice
	carriedMost = 1024 // the most bytes of sets that do so
	noticeBytes = 128  // otherwise, for the notice and the request
)

// boundedBytes is the size that a filter's encoding exceeds with a probability of at most odds.
// The number of ones after n·k draws is distributed as a sum of independent events (Vatutin and
// Mikhailov, 1982). So Bernstein's inequality holds with its own variance, m·p·(1-(1+a)·p) for
// a load of a and p = e^-a. This is far less than what Azuma's inequality needs (Mitzenmacher,
// appendix). The positions of one key are not independent of each other, but measurements on
// many filters show no difference.
func boundedBytes(m uint64, k int, n uint64, fill, odds float64) float64 {
	size, draws := float64(m), float64(n)*float64(k)
	load := draws / size
	spread := load * load / 2 // for small loads, where the formula below loses all digits
	if load > 1e-3 {
		spread = math.Exp(-load) * (-math.Expm1(-load) - load*math.Exp(-load))
	}
	unlikely := math.Log(1 / odds)
	stray := unlikely/3 + math.Sqrt(unlikely*unlikely/9+2*unlikely*size*spread)
	worst := 1.0
	switch most, least := min(fill*size+stray, draws), fill*size-stray; {
	case most < size/2:
		worst = entropy(most / size)
	case least > size/2:
		worst = entropy(least / size)
	}
	return encodedAtMost(m, k, n, worst)
}

// encodedAtMost is the most bytes that a filter's encoding takes, given the entropy of each
// bit.
func encodedAtMost(m uint64, k int, n uint64, entropy float64) float64 {
	code := float64(m) * entropy / 8
	if code < adaptiveOnly {
		return code + adaptiveBytes + headBytes(m, k, n)
	}
	return code + coderBytes + code*coderShare + headBytes(m, k, n)
}

// A coder takes at most so many bytes above the entropy, and such a share of it. Codes of less than
// adaptiveOnly bytes are by the adaptive method.
const (
	adaptiveOnly  = 640
	adaptiveBytes = 3

	coderBytes = 12
	coderShare = 1.0 / 2000
)

// headBytes is the bytes of a filter's message besides the code of its positions, for an epoch
// in Unix time and up to 2^35 versions.
func headBytes(m uint64, k int, n uint64) float64 {
	var buf [128]byte
	b := appendHeader(buf[:0], Header{
		Kind:     KindFilter,
		Geometry: Geometry{Bits: m, Hashes: k},
		Version:  Version{Epoch: 1 << 34, Sequence: 1<<35 - 1},
		Keys:     n,
		Ones:     min(m, n*uint64(k)),
	})
	return float64(len(b) + checksumBytes)
}

// pace fills in how often updates are sent, and what they cost.
func (g Goal) pace(p *Design, fill float64) {
	threshold := g.Threshold
	if threshold == 0 && g.Interval == 0 {
		threshold = max(0.01, g.leastShare())
	}
	if threshold > 0 {
		threshold = max(threshold, 1/float64(g.Objects))
	}
	if g.Interval > 0 {
		if share := g.Churn * g.Interval.Seconds() / float64(g.Objects); threshold == 0 || share < threshold {
			threshold = share
		}
	}
	if g.pacing() {
		// Find the smallest share that the budget allows. The cost falls as the share grows,
		// except where updates become too long for the datagrams of their notices.
		over := func(part uint64) bool {
			g.traffic(p, fill, float64(part)/shareParts)
			return p.BytesPerSecond > g.BytesPerSecond
		}
		carried := func(part uint64) bool { return g.sets(p, fill, float64(part)/shareParts) <= carriedMost }
		part := uint64(g.leastShare() * shareParts)
		if over(part) {
			least, most := part, uint64(shareParts)
			if carried(part) {
				if last := search(part, most, carried); over(last) {
					least = last
				} else {
					most = last
				}
			}
			part = min(search(least, most, over)+1, shareParts)
		}
		threshold = float64(part) / shareParts
	}
	g.traffic(p, fill, min(threshold, 1))
}

// traffic fills in the cost of updates that are sent whenever a share c was replaced.
func (g Goal) traffic(p *Design, fill, c float64) {
	p.Threshold = c
	sets := g.sets(p, fill, c)
	p.DeltaBytes = sets + messageBytes
	seconds := g.Interval.Seconds()
	if g.Churn > 0 {
		if filled := c * float64(g.Objects) / g.Churn; seconds == 0 || filled < seconds {
			seconds = filled
		}
	}
	if seconds == 0 || c == 0 {
		p.BytesPerSecond = 0
		if g.Churn > 0 || g.Threshold == 0 { // otherwise the share is given, and the time is not
			p.DeltaBytes = 0
		}
		if seconds > 0 {
			p.BytesPerSecond = g.others() * g.Resend * p.SnapshotBytes / seconds
		}
		return
	}
	p.Interval = time.Duration(min(seconds*1e9, math.MaxInt64/2))
	if planted.Fault == "interval-overflows" {
		p.Interval = time.Duration(seconds) * time.Second
	}
	sent := noticeBytes + min(p.DeltaBytes, p.SnapshotBytes)
	if sets <= carriedMost {
		sent = min(sent, carryBytes+sets)
	}
	p.BytesPerSecond = g.others() * ((1-g.Resend)*sent + g.Resend*p.SnapshotBytes) / seconds
}

// sets is about how many bytes an update's sets take if a share c was replaced.
func (g Goal) sets(p *Design, fill, c float64) float64 {
	return conditional(float64(p.Geometry.Bits), float64(p.Geometry.Hashes), float64(g.Objects), fill, c) / 8
}

// conditional is the entropy in bits of a filter given the previous one, if a share c of n keys
// was replaced. A clear position becomes set if one of c·n new keys falls on it, and as many
// positions are cleared.
func conditional(m, k, n, fill, c float64) float64 {
	if fill <= 0 || fill >= 1 {
		return 0
	}
	set := -math.Expm1(c * n * k * math.Log1p(-1/m))
	return m * ((1-fill)*entropy(set) + fill*entropy(min(1, set*(1-fill)/fill)))
}

// exceeded returns the budget that a plan exceeds the most, or nil.
func (g Goal) exceeded(p Design) *GoalError {
	worst, broken := g.worst(&p)
	if !broken {
		return nil
	}
	found := worst // a copy, so that only a budget that is exceeded is allocated
	return &found
}

func (g Goal) worst(p *Design) (worst GoalError, broken bool) {
	check := func(budget string, have, need float64) {
		if have > 0 && need > have && (!broken || need/have > worst.Need/worst.Have) {
			worst, broken = GoalError{budget, have, need}, true
		}
	}
	check("BytesPerSecond", g.BytesPerSecond, p.BytesPerSecond)
	check("MemoryBytes", float64(g.MemoryBytes), p.MemoryBytes)
	check("SnapshotBytes", float64(g.SnapshotBytes), p.SnapshotBound)
	check("DeltaBytes", float64(g.DeltaBytes), p.DeltaBytes)
	return worst, broken
}

// entropy is the entropy, in bits, of a bit that is one with probability p.
func entropy(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -p*math.Log2(p) - (1-p)*math.Log1p(-p)/math.Ln2
}
