package admin

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Status is the status of a peer, as in /status.json. Counters start at 0 with the process and only
// grow. Fields may be added, but their meaning never changes.
type Status struct {
	Name    string    `json:"name"`
	Cluster string    `json:"cluster,omitempty"` // the name of the cluster
	Zone    string    `json:"zone,omitempty"`    // where it runs
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`
	Ready   bool      `json:"ready"`
	State   string    `json:"state"`  // "starting", "serving" or "draining"
	Origin  string    `json:"origin"` // of a reverse proxy; "" = forward proxy

	Addresses Addresses `json:"addresses"`
	Encrypted bool      `json:"encrypted"` // gossip is, by the cluster's secret
	// When this peer's certificate for TLS with the others expires; zero = it has none.
	CertificateUntil time.Time `json:"certificate_until,omitzero"`

	Config  Attempt         `json:"config"`
	Upgrade Attempt         `json:"upgrade"` // of the program
	Health  Health          `json:"health"`
	Origins []proxy.Failing `json:"origins_failing"` // those whose last request got no answer, the latest first

	Late     float64         `json:"late_seconds"` // delay of this process for lack of processor time
	Clients  Connections     `json:"connections"`
	Memory   Memory          `json:"memory"`
	Siblings Siblings        `json:"siblings"`
	Traffic  proxy.Counts    `json:"traffic"`
	Store    diskstore.Stats `json:"store"`
	Digest   Digest          `json:"digest"`
	Exchange Exchange        `json:"exchange"`
	Members  []Member        `json:"members"` // the other peers
}

// Connections are those of clients and siblings.
type Connections struct {
	Open    int   `json:"open"`
	Dropped int64 `json:"dropped"` // idle ones, for others
	Refused int64 `json:"refused"` // because no connection could make room
}

// Memory is the budget of the process, in bytes.
type Memory struct {
	Limit    int64          `json:"limit"`  // of the process; 2^63-1 = none
	Budget   int64          `json:"budget"` // of all accounts; the rest is for the program and garbage
	Accounts []budget.Usage `json:"accounts"`
}

// Held returns the bytes that all accounts hold.
func (m Memory) Held() (bytes int64) {
	for _, a := range m.Accounts {
		bytes += a.Held
	}
	return bytes
}

// Siblings is how well siblings answer now.
type Siblings struct {
	Deadline float64 `json:"deadline_seconds"` // of the next request; it follows recent answers
	// share of the requests of the last half minute without an answer in time
	Lost float64 `json:"lost_ratio"`
	// ZoneBytes are the bytes of bodies that siblings of each zone sent; those without a zone are left out.
	ZoneBytes map[string]int64 `json:"zone_body_bytes,omitempty"`
}

// Addresses are where a peer listens, ports chosen by the system included.
type Addresses struct {
	Listen  string `json:"listen"`
	Admin   string `json:"admin"`
	Gossip  string `json:"gossip"`
	Service string `json:"service"`         // where siblings send requests
	HTTPS   string `json:"https,omitempty"` // for clients by TLS; "" = none
	// The peer's Unix socket, by which whoever may open it sends commands without a token; "" = it could not be made.
	Socket string `json:"socket,omitempty"`
}

// page returns the address at which other machines reach the status page, "" if they can't. If
// the listener has a wildcard address, it is the host to which siblings send requests. A loopback
// address counts if siblings use loopback, too.
func (a Addresses) page() string {
	admin, err := netip.ParseAddrPort(a.Admin)
	host, _, _ := net.SplitHostPort(a.Service)
	service, _ := netip.ParseAddr(host)
	switch {
	case err != nil || host == "" || admin.Addr().IsLoopback() && !service.IsLoopback():
		return ""
	case admin.Addr().IsUnspecified():
		return net.JoinHostPort(host, strconv.Itoa(int(admin.Port())))
	}
	return a.Admin
}

// Digest describes what a peer publishes of its own contents.
type Digest struct {
	Keys              int     `json:"keys"`      // objects in it now
	Published         uint64  `json:"published"` // objects in the version that the others can have
	Planned           uint64  `json:"planned"`   // objects that it was planned for
	Replans           uint64  `json:"replans"`   // how often it was planned anew since the start, for more
	Bits              uint64  `json:"bits"`      // m
	Hashes            int     `json:"hashes"`    // k
	FalsePositiveRate float64 `json:"false_positive_rate"`
	Epoch             uint64  `json:"epoch"`
	Sequence          uint64  `json:"sequence"`
	MemoryBytes       int     `json:"memory_bytes"`
	Saturated         int     `json:"saturated"` // counters that are stuck
}

// Exchange counts the traffic about digests. Bytes are the whole payload of UDP
// and TCP on the gossip port, without the headers of either and of IP.
type Exchange struct {
	exchange.Stats
	// by kind; all but invalidations, membership and sealing is about digests
	Sent       gossip.Traffic `json:"bytes_sent"`
	Received   gossip.Traffic `json:"bytes_received"`
	SquidSent  int64          `json:"squid_sent"` // digests fetched by Squids
	SquidBytes int64          `json:"squid_bytes_sent"`
	// it keeps no digests of others, and asks peers that do
	Light        bool               `json:"light"`
	Questions    exchange.Questions `json:"questions"`        // of light peers
	ReplicaBytes int64              `json:"replica_bytes"`    // memory of the others' digests
	IndexBytes   int64              `json:"index_bytes"`      // memory of the index over them, which lookups ask
	LagMean      float64            `json:"lag_mean_seconds"` // from the first advert of a version until it is held
	LagMax       float64            `json:"lag_max_seconds"`
	JoinsRefused int64              `json:"joins_refused"` // attempts to join that another peer refused
	// peers that this one does not hear, or that do not hear it
	Half            int   `json:"half_members"`
	ClustersRefused int64 `json:"clusters_refused"` // packets and streams of clusters with other names
}

// A Member describes another peer, as this peer knows it.
type Member struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`  // "alive", "suspended", "quarantined", "left" (it announced that) or "dead"
	Since   time.Time `json:"since"`  // when it came or went
	Gossip  string    `json:"gossip"` // "" for a Squid
	Service string    `json:"service"`
	Zone    string    `json:"zone,omitempty"`  // where it runs
	Light   bool      `json:"light,omitempty"` // it keeps no digests of others
	// whether it hears this peer: "yes", "streams only" (UDP is lost), "others only" or "no"; "" = unknown
	Hears string `json:"hears,omitempty"`
	Squid bool   `json:"squid,omitempty"` // beside the cluster, by its cache digest
	// What it runs, and since when, by its last answer for /cluster.json; "" and zero = it has not answered yet.
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`

	Current           bool    `json:"current"` // there is a replica of its digest, and no newer version is known
	Keys              uint64  `json:"keys"`
	FalsePositiveRate float64 `json:"false_positive_rate"`
	Age               float64 `json:"age_seconds"` // since the digest was last known to be current
	MemoryBytes       int     `json:"memory_bytes"`

	Record
}

// A Record says how a sibling has answered this peer's requests. It decides whether and in which
// order the sibling is asked.
type Record struct {
	sibling.Record
	// recent time from a request to the header of its answer; 0 = it never answered
	RoundTrip float64 `json:"round_trip_seconds"`
}

// Here reports whether the member is in the cluster now: it has not left and is not dead.
func (m Member) Here() bool { return m.State != "left" && m.State != "dead" }
