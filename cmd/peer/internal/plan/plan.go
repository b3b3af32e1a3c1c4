package plan

import (
	"errors"
	"math"
	"math/bits"
	"time"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
)

// best returns the best plan, or why there is none.
func (g Goal) best() (Design, error) {
	if g.FalseCandidates > 0 {
		m, ok := bloom.FewestBits(g.Objects, 1, g.rate())
		if !ok {
			_, possible := bloom.Predict(bloom.MaxBits, 1, g.Objects)
			return Design{}, &GoalError{"FalseCandidates", g.FalseCandidates, possible * g.others()}
		}
		plan := g.evaluate(m)
		plan.Binding = "FalseCandidates"
		if g.pacing() && plan.Threshold > g.leastShare() {
			plan.Binding = "BytesPerSecond"
		}
		return plan, g.exceeded(plan)
	}
	if err := g.exceeded(g.evaluate(1)); err != nil {
		return Design{}, err
	}
	// The most bits that the budgets allow: everything grows with them, except
	// that memory falls where a sorted set takes the place of a bitmap.
	bitmap := g.lastBitmap()
	var m uint64
	if bitmap < bloom.MaxBits && g.fits(bitmap+1) {
		m = bloom.Search(bitmap+1, bloom.MaxBits, g.fits)
	} else {
		m = bloom.Search(1, bitmap, g.fits)
	}
	plan := g.evaluate(m)
	var next *GoalError
	if errors.As(g.exceeded(g.evaluate(min(m+1, bloom.MaxBits))), &next) {
		plan.Binding = next.Budget
	}
	return plan, nil
}

func (g Goal) fits(m uint64) bool { return g.exceeded(g.evaluate(m)) == nil }

// lastBitmap returns the largest number of bits at which a bitmap is the better form.
func (g Goal) lastBitmap() uint64 {
	return bloom.Search(1, bloom.MaxBits, func(m uint64) bool {
		fill, _ := bloom.Predict(m, 1, g.Objects)
		return dense(m, uint64(math.Round(fill*float64(m))))
	})
}

// pacing reports whether the plan must find the threshold.
func (g Goal) pacing() bool {
	return g.Interval == 0 && g.BytesPerSecond > 0 && g.Churn > 0 && g.FalseCandidates > 0
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

// evaluate predicts everything for m bits.
func (g Goal) evaluate(m uint64) Design {
	p := Design{Geometry: digest.Geometry{Bits: m, Hashes: 1}}
	fill, f := bloom.Predict(m, 1, g.Objects)
	p.FalsePositiveRate, p.FalseCandidates = f, f*g.others()
	ones := uint64(math.Round(fill * float64(m)))
	p.Coding = arith.Choose(m, ones).String()
	p.MemoryBytes = g.others() * replicaBytes(m, ones)
	code := float64(m) * bloom.Entropy(fill) / 8
	p.SnapshotBytes = code + headBytes(m, g.Objects)
	p.SnapshotBound = boundedBytes(m, g.Objects, fill, boundOdds)
	g.pace(&p, fill)
	return p
}

// boundOdds is the probability that a snapshot is longer than its bound.
const boundOdds = 0.001

// messageBytes is about how many bytes a delta takes besides its sets.
const messageBytes = 36

// About how many bytes an update takes besides its sets, with the headers of IP and UDP.
const (
	carryBytes  = 48   // if it travels in the datagram of its notice
	carriedMost = 1024 // the most bytes of sets that do so
	noticeBytes = 128  // otherwise, for the notice and the request
)

// boundedBytes is the size that a filter's encoding exceeds with a probability of at most odds.
// The number of ones after n draws is distributed as a sum of independent events (Vatutin and
// Mikhailov, 1982). So Bernstein's inequality holds with its own variance, m·p·(1-(1+a)·p) for
// a load of a and p = e^-a. This is far less than what Azuma's inequality needs (Mitzenmacher,
// appendix).
func boundedBytes(m, n uint64, fill, odds float64) float64 {
	size, draws := float64(m), float64(n)
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
		worst = bloom.Entropy(most / size)
	case least > size/2:
		worst = bloom.Entropy(least / size)
	}
	return encodedAtMost(m, n, worst)
}

// encodedAtMost is the most bytes that a filter's encoding takes, given the entropy of each
// bit.
func encodedAtMost(m, n uint64, entropy float64) float64 {
	code := float64(m) * entropy / 8
	if code < adaptiveOnly {
		return code + adaptiveBytes + headBytes(m, n)
	}
	return code + coderBytes + code*coderShare + headBytes(m, n)
}

// A coder takes at most so many bytes above the entropy, and such a share of it. Codes of less than
// adaptiveOnly bytes are by the adaptive method.
const (
	adaptiveOnly  = 640
	adaptiveBytes = 3

	coderBytes = 12
	coderShare = 1.0 / 2000
)

// headBytes is the bytes of a filter's message besides the code of its positions (digest/FORMAT.md), for an epoch
// in Unix time and up to 2^35 versions: 26 bytes of fixed length, 10 for epoch and version, and three numbers.
func headBytes(m, n uint64) float64 {
	return float64(36 + varintBytes(m) + varintBytes(n) + varintBytes(min(m, n)))
}

func varintBytes(x uint64) int { return (bits.Len64(x|1) + 6) / 7 }

// dense reports whether package digest keeps so many positions of m as a bitmap.
func dense(m, ones uint64) bool { return m <= 4096 || m/16 <= ones }

// replicaBytes is about the memory of a filter of package digest, which grows with m: of a bitmap, or of sorted lists,
// in pieces of 2 KiB or some 400 bytes, with the tree above them and what the allocator rounds up. A test compares it
// with filters.
func replicaBytes(m, ones uint64) float64 {
	const node, fan = 109, 8 // bytes of a node with its share of what is above it, pieces of a node
	if dense(m, ones) {
		piece := min(1<<14, (m+63)/64*64)
		pieces := (m-1)/piece + 1
		return float64(node*((pieces-1)/fan+1) + pieces*piece/8)
	}
	n := max(ones, 64)
	low := max(1, bits.Len64(m/n|1)) - 1
	if n < ((m-1)>>low+1)/16*9 {
		low++
	}
	buckets := float64(m) / math.Exp2(float64(low))
	size := float64(ones)*float64(low+1) + buckets
	pieces := max(1, size/(8*400), buckets/512)
	return math.Floor((size+64*pieces)*1.043/8+node*math.Ceil(pieces/fan)) + 8
}

// pace fills in how often updates are sent, and what they cost.
func (g Goal) pace(p *Design, fill float64) {
	threshold := g.Churn * g.Interval.Seconds() / float64(g.Objects)
	if g.Interval == 0 {
		threshold = max(0.01, g.leastShare())
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
				if last := bloom.Search(part, most, carried); over(last) {
					least = last
				} else {
					most = last
				}
			}
			part = min(bloom.Search(least, most, over)+1, shareParts)
		}
		threshold = float64(part) / shareParts
	}
	g.traffic(p, fill, min(threshold, 1))
}

// traffic fills in the cost of updates that are sent whenever a share c was replaced.
func (g Goal) traffic(p *Design, fill, c float64) {
	p.Threshold = c
	sets := g.sets(p, fill, c)
	p.DeltaBytes, p.BytesPerSecond = 0, 0
	seconds := g.Interval.Seconds()
	if g.Churn > 0 {
		if filled := c * float64(g.Objects) / g.Churn; seconds == 0 || filled < seconds {
			seconds = filled
		}
	}
	if seconds == 0 || c == 0 {
		return
	}
	p.DeltaBytes = sets + messageBytes
	p.Interval = time.Duration(min(seconds*1e9, math.MaxInt64/2))
	sent := noticeBytes + min(p.DeltaBytes, p.SnapshotBytes)
	if sets <= carriedMost {
		sent = min(sent, carryBytes+sets)
	}
	p.BytesPerSecond = g.others() * sent / seconds
}

// sets is about how many bytes an update's sets take if a share c was replaced.
func (g Goal) sets(p *Design, fill, c float64) float64 {
	return conditional(float64(p.Geometry.Bits), float64(g.Objects), fill, c) / 8
}

// conditional is the entropy in bits of a filter given the previous one, if a share c of n keys
// was replaced. A clear position becomes set if one of c·n new keys falls on it, and as many
// positions are cleared.
func conditional(m, n, fill, c float64) float64 {
	if fill <= 0 || fill >= 1 {
		return 0
	}
	set := -math.Expm1(c * n * math.Log1p(-1/m))
	return m * ((1-fill)*bloom.Entropy(set) + fill*bloom.Entropy(min(1, set*(1-fill)/fill)))
}

// exceeded returns the budget that a plan exceeds the most, as a [*GoalError], or nil.
func (g Goal) exceeded(p Design) error {
	traffic, memory := p.BytesPerSecond/g.BytesPerSecond, p.MemoryBytes/float64(g.MemoryBytes) // by 0 if there is no budget
	switch {
	case g.BytesPerSecond > 0 && traffic > 1 && (g.MemoryBytes == 0 || traffic >= memory):
		return &GoalError{"BytesPerSecond", g.BytesPerSecond, p.BytesPerSecond}
	case g.MemoryBytes > 0 && memory > 1:
		return &GoalError{"MemoryBytes", float64(g.MemoryBytes), p.MemoryBytes}
	}
	return nil
}
