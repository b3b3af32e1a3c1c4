package config

import (
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// Config is a checked configuration. It is plain data: copy it freely. A field's
// setting is named like it.
type Config struct {
	Name string

	Listen    string   // host:port; port 0 = any free one
	Admin     string   // likewise
	Gossip    string   // likewise
	Advertise string   // host without a port; "" = that of Listen and Gossip, which is no wildcard then
	Join      []string // see gossip.Config
	// JoinTimeout bounds the wait for the first answer of a Join address; 0 =
	// don't wait.
	JoinTimeout time.Duration
	Secret      []byte // nil = none: gossip is neither encrypted nor authenticated
	// AcceptSecrets are those under which others are believed besides, while a
	// cluster moves from one to the next.
	AcceptSecrets [][]byte

	SecretShared bool // others than the file's owner and group can read the secret

	SquidPeers []string // host:port of the http_port of each Squid to cooperate with; none twice

	// PeerTLS secures HTTP between peers; nil = it is plain.
	PeerTLS *peertls.Identity

	Origin *url.URL     // with Sites nil too: a forward proxy
	Sites  []proxy.Site // of the file; nil if Origin is not
	// TrustedProxies are the networks of proxies that are believed in for whom they ask.
	TrustedProxies []netip.Prefix

	Rules rules.Set // the last are those of default-ttl and compress, if they are set

	Store      string
	StoreSize  int64         // bytes
	MemorySize int64         // bytes
	Scrub      time.Duration // of all of the store; 0 = never

	SiblingMaxAge  time.Duration // for which what a sibling gave is served; 0 = while it is fresh
	SiblingCompare int           // one in so many of siblings' answers is compared with the origin's; 0 = none

	Digests string // file of digests that outlive the process; "" = none

	// Deadlines; 0 = 60 s. To an origin: for a connection, from the end of a request to
	// the header of its answer, and for a pause within the body. To a client: for a pause
	// within the body of its request, and for taking nothing of its answer.
	ConnectTimeout, FirstByteTimeout, BetweenBytesTimeout time.Duration
	ClientBodyTimeout, SendTimeout                        time.Duration

	// Clients that may use a forward proxy, and the ports that it opens tunnels to.
	ProxyClients []netip.Prefix
	ConnectPorts []uint16
	PurgeClients []netip.Prefix // whose PURGE is carried out; none = this machine's

	AdminHosts []string
	AdminToken string // "" = none
	Profiles   bool

	MaxConnections int // of clients; 0 = as many as there are descriptors for, at most 16,384

	Objects        uint64        // planned for; at least 1
	FalsePositives float64       // in (0, 0.5]
	Publish        time.Duration // 0 = as gossip has it
	IndexSize      int64         // bytes of the index over all digests; 0 = no bound

	// Traces says where spans are posted to, as OTLP over HTTP; nil = nowhere.
	Traces       *url.URL
	TraceHeader  map[string]string // sent along
	TraceTimeout time.Duration     // for one post; 0 = 10 s

	lists map[string][]string // the lists of the file, as they are shown

	HTTPS *HTTPS // nil = clients do not come by TLS

	AccessLog     string // a file or "-"; "" = none
	AccessLogJSON bool

	LogLevel slog.Level
	LogJSON  bool
	Drain    time.Duration
}

// LogValue keeps the secret out of logs.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", c.Name), slog.String("listen", c.Listen), slog.String("admin", c.Admin),
		slog.String("gossip", c.Gossip), slog.String("advertise", c.Advertise), slog.Any("join", c.Join),
		slog.Bool("secret", c.Secret != nil), slog.Any("origin", c.Origin), slog.String("store", c.Store),
		slog.Int64("store-size", c.StoreSize), slog.Uint64("objects", c.Objects))
}
