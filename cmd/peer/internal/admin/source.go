package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// A Source is the peer behind a [Handler]. Its methods are called from many goroutines at once.
type Source interface {
	// Status returns the current state of the peer. It is quick even if a
	// part of the peer hangs: Status.Health then says what is missing.
	Status() Status
	// Health returns the health of the peer, without a call to anything that may hang.
	Health() Health
	// History returns the samples of the last hour and day, oldest first. The last one is current.
	History() []Sample
	// Events returns the last lines of the log, the latest first.
	Events() []Event
	// Cluster returns the rows of all peers, this one first. Each peer reports its own row.
	// A peer that is dead or does not answer within a second has a row that says so.
	Cluster(context.Context) Cluster
	// Misses returns the last requests of clients that were not answered from the store, and why,
	// here or, within a second, everywhere.
	Misses(context.Context, PastRequest) Misses
	// Why explains how a request would be answered. It returns an error for an invalid request.
	Why(WhyRequest) (Explanation, error)
	// Holders returns what each other peer stores for the URL of a request, within a second.
	Holders(context.Context, WhyRequest) []Holder
	// Digest returns the encoding of a peer's digest: for "" and this peer's name the digest
	// that this peer has published, otherwise the replica of another peer's digest.
	// ErrNoDigest means that there is none.
	Digest(peer string) ([]byte, error)
	// Purge removes responses, here or everywhere. It returns an error for an invalid request.
	// The report names peers that could not be reached, or were not done within a second.
	Purge(context.Context, PurgeRequest) (PurgeReport, error)
	// Reload reads the configuration again and applies what can change. An error means that
	// nothing has changed.
	Reload(ReloadRequest) (ReloadReport, error)
	// Replace checks the program file, and has it continue in the peer's process. The check may take as long as
	// ctx allows. An error means that the peer goes on as it was; without one the peer is replaced soon.
	Replace(context.Context, ReplaceRequest) (ReplaceReport, error)
}

// ErrNoDigest means that there is no digest of that peer.
var ErrNoDigest = errors.New("there is no digest of that peer")

// A WhyRequest describes a client's request whose answer is to be explained.
type WhyRequest struct {
	Method string // "" = GET
	URL    string // absolute, or a path to a reverse proxy
	Header http.Header
}

// An Explanation says how a request would be answered, and why.
type Explanation struct {
	Peer   string `json:"peer"` // whose explanation it is
	Method string `json:"method"`
	engine.Explanation
	Text string `json:"text"` // verdict and reason in a sentence

	Rules []rules.Decision `json:"rules,omitempty"` // the decisions of rules about the request
	// the result of each lookup in a digest: for each digest and each identity of the request
	Matches []Match  `json:"matches"`
	Others  []Holder `json:"others"` // what the other peers store
	// the last requests for the URL that the peer did not answer from its store, the latest first
	Past []Miss `json:"past"`
}

// A Holder lists the responses that a peer stores for a URL.
type Holder struct {
	Peer   string          `json:"peer"`
	Error  string          `json:"error"` // why it does not answer; "" = it did
	Stored []engine.Stored `json:"stored"`
}

// A Match is the result of looking up one identity in one digest.
type Match struct {
	Peer     string `json:"peer"`
	State    string `json:"state"` // as in [Member]
	Identity string `json:"identity"`
	Says     bool   `json:"says_yes"`
	// Turn is the peer's place in the order in which peers would be asked, from 1; 0 = it would
	// not be asked.
	Turn              int     `json:"turn"`
	FalsePositiveRate float64 `json:"false_positive_rate"` // odds that the digest claims an object that the peer lacks
	Age               float64 `json:"age_seconds"`         // of the digest, since it was last known to be current
	// that the peer has the object, by record and digest; 0 = it would not be asked
	Odds float64 `json:"odds"`
	Cost float64 `json:"cost_seconds"` // RoundTrip over Odds: the cheapest peer is asked first
	Record
}

// A PurgeRequest says what to remove.
type PurgeRequest struct {
	URL        string   `json:"url,omitempty"`  // absolute, or a path to a reverse proxy
	Prefix     bool     `json:"prefix"`         // everything whose URL begins with it
	Pattern    bool     `json:"pattern"`        // everything whose URL it matches, where * stands for any characters
	Tags       []string `json:"tags,omitempty"` // instead of a URL: everything that has one of them
	Soft       bool     `json:"soft"`           // make it stale instead of removing it
	Everywhere bool     `json:"everywhere"`     // at every peer of the cluster
}

// A PurgeReport says what was removed.
type PurgeReport struct {
	Peers []Purged `json:"peers"`         // this peer first
	URL   string   `json:"url,omitempty"` // the absolute URL, prefix or pattern; "" = the purge was by tag
}

// Purged is the result of a purge at one peer.
type Purged struct {
	Peer string `json:"peer"`
	// responses, all variants; null = unknown: only the peer that got the command counts them
	Removed *int   `json:"removed"`
	Error   string `json:"error"` // why nothing was; "" = it was done
}

// Failed returns the number of peers with an error.
func (r PurgeReport) Failed() (n int) {
	for _, p := range r.Peers {
		if p.Error != "" {
			n++
		}
	}
	return n
}
