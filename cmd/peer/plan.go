package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/plan"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/digest/bloom"
)

type planCommand struct {
	Objects         uint64        `name:"objects" type:"count" min:"1" max:"1073741824" xor:"load" required:""`
	Peers           int           `name:"peers" default:"2" type:"count" min:"2" max:"16777216"`
	Churn           float64       `name:"churn" default:"0" type:"number" max:"1e12"`
	Interval        time.Duration `name:"interval" default:"0s" type:"time" max:"1000h"`
	FalseCandidates *float64      `name:"false-candidates" type:"number" min:"1e-12" max:"1e6"`
	Bandwidth       int64         `name:"bandwidth" type:"size"`
	Memory          int64         `name:"memory" type:"size"`
	Trace           string        `name:"trace" xor:"load" required:""`
	Size            int64         `name:"size" type:"size"`
	JSON            bool          `name:"json"`
}

func (c *planCommand) Help() string {
	return `Computes which digest suits a cluster, and what it costs. State what you know of the objects and what you can afford. The plan names the budget that limits it. Digests have one hash, like those of peer run.

Example: 200,000 objects in each of 8 peers, 20 replaced a second, 16 KiB/s to spend:
  peer plan --objects 200000 --peers 8 --churn 20 --bandwidth 16KiB

With --trace it answers what that many peers would save on your own traffic: beside one large cache, caches apart, and
each object at its owner alone.`
}

// flagOf maps the budgets of a plan.Goal to their flags.
var flagOf = map[string]string{
	"FalseCandidates": "--false-candidates", "BytesPerSecond": "--bandwidth", "MemoryBytes": "--memory",
}

// planned is what plan prints as JSON.
type planned struct {
	Bits              uint64  `json:"bits"`
	Hashes            int     `json:"hashes"`
	Coding            string  `json:"coding"`
	FalsePositiveRate float64 `json:"false_positive_rate"`
	FalseCandidates   float64 `json:"false_candidates"`
	DigestBytes       float64 `json:"digest_bytes"`
	DigestBytesBound  float64 `json:"digest_bytes_bound"`
	UpdateBytes       float64 `json:"update_bytes"`
	UpdateSeconds     float64 `json:"update_seconds"` // 0 = nothing ever changes
	UpdateShare       float64 `json:"update_share"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	MemoryBytes       float64 `json:"memory_bytes"`
	IndexBytes        float64 `json:"index_bytes"`
	JoiningBytes      float64 `json:"joining_bytes"`
	Flat              bool    `json:"flat"` // memory, index and joining are within flatMost
	// out and in, of a peer that keeps no digests and asks one of eight that do
	AskingPerSecond float64 `json:"asking_bytes_per_second"`
	// owner hashing moves fewer bytes if bodies are smaller; 0 = never
	OwnerBodyBytes float64 `json:"owner_body_bytes"`
	RedisBytes     float64 `json:"redis_bytes"`
	Binding        string  `json:"binding"` // the flag; "" = none
	Run            string  `json:"run"`     // the settings of peer run for this plan
}

// What decides which way of cooperating is right (gossip/CHOOSING.md).
const (
	flatMost  = 1 << 30 // bytes of memory, and of joining, up to which each peer may keep everybody's digest
	fullPeers = 8       // that keep all digests where others ask them, in a cluster without zones
	// a question of one key, and a reply with one holder, with headers of IP and UDP (gossip/PROTOCOL.md, section 16.1)
	askBytes = 41 + 45
	// of the header of an answer, which owner hashing moves once more for half of the hits, with the body
	answerBytes = 242
	redisEntry  = 208 // bytes of a set of its own for each object, in Redis 7.0
)

// choose fills in what the plan costs beside other ways.
func (p *planned) choose(g plan.Goal) {
	others := float64(g.Peers - 1)
	p.IndexBytes, p.JoiningBytes = others*float64(g.Objects)*bloom.EntryBytes, others*p.DigestBytes
	p.Flat = p.MemoryBytes+p.IndexBytes <= flatMost && p.JoiningBytes <= flatMost
	// its questions and its own changes
	p.AskingPerSecond = askBytes*g.Churn + min(fullPeers/others, 1)*p.BytesPerSecond
	p.RedisBytes = float64(g.Peers) * float64(g.Objects) * redisEntry
	if g.Churn > 0 {
		p.OwnerBodyBytes = max(0, 2*p.BytesPerSecond/g.Churn-answerBytes)
	}
}

func (c *planCommand) Run(e *environment) error {
	digests := c.Churn > 0 || c.Interval > 0 || c.FalseCandidates != nil || c.Bandwidth > 0 || c.Memory > 0
	switch {
	case c.Trace != "" && digests:
		return misuse{errors.New("with --trace, plan takes --peers, --size and --json only")}
	case c.Trace != "" && c.Peers > mostReplayed:
		return misuse{fmt.Errorf("with --trace, --peers is at most %d", mostReplayed)}
	case c.Trace != "":
		return c.compare(e)
	case c.Size > 0:
		return misuse{errors.New("--size needs --trace")}
	}
	goal := c.goal()
	d, err := plan.For(goal)
	var impossible *plan.GoalError
	switch {
	case errors.As(err, &impossible):
		return fmt.Errorf("no plan meets all of this: %s is %s and would have to be at least %s",
			flagOf[impossible.Budget],
			amount(impossible.Budget, impossible.Have), amount(impossible.Budget, impossible.Need))
	case err != nil:
		return misuse{err}
	}
	p := planned{
		Bits: d.Geometry.Bits, Hashes: d.Geometry.Hashes, Coding: d.Coding, FalsePositiveRate: d.FalsePositiveRate,
		FalseCandidates: d.FalseCandidates, DigestBytes: d.SnapshotBytes, DigestBytesBound: d.SnapshotBound,
		UpdateBytes: d.DeltaBytes, UpdateSeconds: d.Interval.Seconds(), UpdateShare: d.Threshold,
		BytesPerSecond: d.BytesPerSecond, MemoryBytes: d.MemoryBytes, Binding: flagOf[d.Binding], Run: settings(goal, d),
	}
	p.choose(goal)
	return show(e, c.JSON, p, func(p planned) string { return p.text(goal) })
}

// goal returns the goal that the flags state.
func (c *planCommand) goal() plan.Goal {
	g := plan.Goal{
		Objects: c.Objects, Peers: c.Peers, Churn: c.Churn, Interval: c.Interval,
		BytesPerSecond: float64(c.Bandwidth), MemoryBytes: c.Memory,
	}
	switch {
	case c.FalseCandidates != nil:
		g.FalseCandidates = *c.FalseCandidates
	case g.MemoryBytes == 0:
		g.FalseCandidates = 0.001 * float64(g.Peers-1)
	}
	return g
}

// settings returns the flags of peer run for a design. From the objects and the false positives, run
// computes the same number of bits.
func settings(g plan.Goal, d plan.Design) string {
	publish := ""
	if d.Interval > 0 {
		publish = fmt.Sprintf(" --publish %v",
			min(max(d.Interval.Round(10*time.Millisecond), 10*time.Millisecond), time.Hour))
	}
	rate := min(max(d.FalsePositiveRate, 1e-9), 0.5)
	if g.FalseCandidates == 0 { // round up to the printed digits, so that the digest stays within the budgets
		unit := math.Pow(10, math.Floor(math.Log10(rate))-2)
		rate = math.Ceil(rate/unit) * unit
	}
	return fmt.Sprintf("--objects %d --false-positives %.3g%s", g.Objects, rate, publish)
}

func (p *planned) text(g plan.Goal) string {
	t := table.New("WHAT", ">VALUE", "")
	t.Row("digest", shape(p.Bits, p.Hashes),
		fmt.Sprintf("%.1f bits per object, sent as %s", float64(p.Bits)/float64(g.Objects), p.Coding))
	t.Row("false positives", fmt.Sprintf("%.3g %%", 100*p.FalsePositiveRate),
		"of the objects that a peer lacks, its digest claims")
	t.Row("false candidates", fmt.Sprintf("%.3g", p.FalseCandidates),
		"peers, on average, whose digest claims an object that nobody has")
	t.Row("snapshot", table.Bytes(int64(math.Ceil(p.DigestBytes))),
		fmt.Sprintf("%.2f bits per object; at most %s in 999 of 1,000 cases", 8*p.DigestBytes/float64(g.Objects),
			table.Bytes(int64(math.Ceil(p.DigestBytesBound)))))
	if p.UpdateSeconds > 0 {
		t.Row("update", table.Bytes(int64(math.Ceil(p.UpdateBytes))),
			fmt.Sprintf("every %s, after %.3g %% of the objects were replaced",
				admin.Span(time.Duration(p.UpdateSeconds*1e9)), 100*p.UpdateShare))
		t.Row("received", table.Bytes(int64(math.Ceil(p.BytesPerSecond)))+"/s",
			fmt.Sprintf("by one peer from the %s", table.Of(g.Peers-1, "other")))
	}
	t.Row("memory", table.Bytes(int64(math.Ceil(p.MemoryBytes))), "in one peer, for the digests of the others")
	t.Row("index", table.Bytes(int64(p.IndexBytes)), "about, in one peer, to look them all up at once")
	t.Row("joining", table.Bytes(int64(math.Ceil(p.JoiningBytes))), "of digests that a new peer fetches")
	if p.Binding != "" {
		t.Row("bound by", p.Binding, "a larger budget would improve the plan")
	} else {
		t.Row("bound by", "nothing", "the budgets exceed what is useful")
	}
	if p.Flat {
		t.Row("way", "digests", fmt.Sprintf("each peer keeps everybody's: memory and joining are within %s",
			table.Bytes(flatMost)))
	} else {
		t.Row("way", "asking", fmt.Sprintf("memory or joining is above %s: eight peers keep all digests, and the "+
			"others ask them (--keep-digests none)", table.Bytes(flatMost)))
		t.Row("asking", table.Bytes(int64(math.Ceil(p.AskingPerSecond)))+"/s",
			"sent and received by one that asks: its changes, and a question for each miss")
	}
	if p.OwnerBodyBytes > 0 {
		t.Row("owner hashing", "< "+table.Bytes(int64(p.OwnerBodyBytes)),
			"bodies for which it moves fewer bytes, if objects may be kept by their owner alone")
	}
	t.Row("Redis", table.Bytes(int64(p.RedisBytes)),
		fmt.Sprintf("on a server that says who has what, at %d B an entry; a round trip for each miss", redisEntry))
	text := t.Text("")
	if p.FalsePositiveRate > 0.1 {
		text += "\nSuch a digest is of little use: the budgets are too small for so many objects.\n"
	}
	return text + "\nAs settings: peer run " + p.Run + "\n"
}

// shape formats a geometry.
func shape(bits uint64, hashes int) string {
	if hashes == 1 {
		return table.Count(bits) + " bits, 1 hash"
	}
	return fmt.Sprintf("%s bits, %d hashes", table.Count(bits), hashes)
}

// amount formats a budget in its unit.
func amount(budget string, x float64) string {
	if budget == "FalseCandidates" {
		return fmt.Sprintf("%.3g", x)
	}
	return table.Bytes(int64(math.Ceil(x)))
}
