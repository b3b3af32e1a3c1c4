package config

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// Config is the configuration of a peer. Fields with a name are its settings: flags,
// variables, and keys of the YAML file. [Flags.Load] checks them and sets the other fields. A
// Config is plain data: copy it freely.
type Config struct {
	File string `name:"config" env:"PEER_CONFIG" placeholder:"FILE" help:"YAML file with settings; its keys are the names of these flags."`

	Name        string        `name:"name" env:"PEER_NAME" placeholder:"NAME" group:"Cluster" help:"This peer's name, unique in the cluster. Default: the host's name."`
	Cluster     string        `name:"cluster" env:"PEER_CLUSTER" placeholder:"NAME" group:"Cluster" help:"The cluster's name, the same for every peer. Peers of clusters with other names, or without one, are refused, even at an address that was a member's or with a copied secret. Default: none."`
	Gossip      string        `name:"gossip" env:"PEER_GOSSIP" placeholder:"ADDR" default:"127.0.0.1:7946" type:"listener" example:"7946" group:"Cluster" help:"Address for gossip with the other peers, UDP and TCP. Default: ${default}."`                                                                                                                      // port 0 = any free one, as for Listen and Admin
	Advertise   string        `name:"advertise" env:"PEER_ADVERTISE" placeholder:"HOST" group:"Cluster" help:"Host or IP at which the other peers reach this one; HOST:PORT where another port than that of --gossip leads to it. Default: the host of --listen and --gossip or, if that is a wildcard, this machine's first private address."`                   // see Advertised; "" = the host of Listen and Gossip, which is no wildcard then
	Join        []string      `name:"join" env:"PEER_JOIN" placeholder:"ADDR,..." sep:"," type:"join" example:"7946" group:"Cluster" help:"Gossip addresses of some other peers, HOST:PORT or srv:NAME for SRV records; repeat it or separate them by commas. A name stands for all of its addresses. They are retried, and names resolved again, every minute."` // as gossip.Config has it
	Zone        string        `name:"zone" env:"PEER_ZONE" placeholder:"NAME" group:"Cluster" help:"Where this peer runs, such as a data centre or an availability zone: up to 14 letters, digits, dots, dashes and underscores. Peers of the same zone are asked first. Default: none."`
	ZoneCost    time.Duration `name:"zone-cost" env:"PEER_ZONE_COST" placeholder:"TIME" default:"0s" type:"time" group:"Cluster" help:"Time by which peers of other zones count as slower than they are, where they are compared with the origin, which goes first if it is far faster. Default: 0s."`
	KeepDigests string        `name:"keep-digests" env:"PEER_KEEP_DIGESTS" placeholder:"WHICH" default:"all" type:"choice" oneof:"all,none" group:"Cluster" help:"all: keep the digests of all peers, so that a miss asks nobody who has the object. none: keep none, and ask a peer that does. Default: ${default}."`
	JoinTimeout time.Duration `name:"join-timeout" env:"PEER_JOIN_TIMEOUT" placeholder:"TIME" default:"0s" type:"time" group:"Cluster" help:"Give up if no --join address answers within this time. Default: 0s, serve alone and keep trying."` // 0 = don't wait for an answer
	SecretFile  string        `name:"secret-file" env:"PEER_SECRET_FILE" placeholder:"FILE" group:"Cluster" help:"File with the cluster's secret, at least 16 bytes, the same for every peer. It encrypts gossip and keeps strangers out. Secrets on further lines are accepted as well, for changing the secret of a running cluster."`
	SquidPeers  []string      `name:"squid-peer" env:"PEER_SQUID_PEER" placeholder:"ADDR,..." sep:"," type:"address" example:"3128" group:"Cluster" help:"HTTP addresses of Squids to exchange cache digests with; repeat it or separate them by commas. SQUID.md describes their configuration."` // none twice
	TLSCert     string        `name:"tls-cert" env:"PEER_TLS_CERT" placeholder:"FILE" group:"Cluster" help:"This peer's certificate for TLS with the other peers, PEM, with its --name as DNS name, for servers and clients. If one peer has a certificate, all need one."`
	TLSKey      string        `name:"tls-key" env:"PEER_TLS_KEY" placeholder:"FILE" group:"Cluster" help:"The key of --tls-cert."`
	TLSCA       string        `name:"tls-ca" env:"PEER_TLS_CA" placeholder:"FILE" group:"Cluster" help:"Certificates of the authority that signs the peers' certificates."`

	Listen         string         `name:"listen" env:"PEER_LISTEN" placeholder:"ADDR" default:"127.0.0.1:3128" type:"listener" example:"3128" group:"Cache" help:"Address for the HTTP requests of clients and of the other peers. Default: ${default}."`
	HTTPSListen    string         `name:"https" env:"PEER_HTTPS" placeholder:"ADDR" type:"listener" example:"443" group:"Cache" help:"Address for HTTPS requests of clients, HTTP/1.1 or HTTP/2. Default: none."`
	HTTPSCert      []string       `name:"https-cert" env:"PEER_HTTPS_CERT" placeholder:"FILE" sep:"," group:"Cache" help:"Certificates for --https, PEM, each followed by its intermediate certificates; repeat it or separate them by commas. The server name that a client requests selects one; the first is the default."`
	HTTPSKey       []string       `name:"https-key" env:"PEER_HTTPS_KEY" placeholder:"FILE" sep:"," group:"Cache" help:"The keys of --https-cert, in the same order."`
	Origin         *url.URL       `name:"origin" env:"PEER_ORIGIN" placeholder:"URL" type:"origin" group:"Cache" help:"Be a reverse proxy for this origin. Without it, be a forward proxy."` // nil, without Sites: a forward proxy
	PreserveHost   string         `name:"preserve-host" env:"PEER_PRESERVE_HOST" placeholder:"ON" default:"off" type:"choice" oneof:"on,off" group:"Cache" help:"on: --origin gets the Host of the client, which is then part of the key, for origins that write it into their answers. Off: it gets its own, and clients may reach the peers by any names. Default: ${default}."`
	PassFields     []string       `name:"pass-field" env:"PEER_PASS_FIELD" placeholder:"NAME,..." sep:"," type:"field" group:"Cache" help:"Header fields that origins get although they might take them for something that is not in the key, such as X_Api_Version; repeat it or separate them by commas. SITES.md lists what is dropped. Default: none."`
	TrustedProxies []netip.Prefix `name:"trusted-proxies" env:"PEER_TRUSTED_PROXIES" placeholder:"CIDR,..." sep:"," type:"network" exact:"yes" group:"Cache" help:"Networks of the proxies in front of a reverse proxy, such as 10.0.0.0/8, whose X-Forwarded-For, -Proto and -Host, or Forwarded, are trusted; those of others are replaced. Must be the same for all peers of a cluster."`
	ProxyProtocol  []netip.Prefix `name:"proxy-protocol" env:"PEER_PROXY_PROTOCOL" placeholder:"CIDR,..." sep:"," type:"network" exact:"yes" group:"Cache" help:"Networks of the proxies in front whose connections to --listen and --https begin with a header of the PROXY protocol, version 1 or 2, which names the client. Connections from there without one are closed."`

	DefaultTTL     *time.Duration `name:"default-ttl" env:"PEER_DEFAULT_TTL" placeholder:"TIME" type:"seconds" group:"Cache" help:"Lifetime of answers that state none, such as 60s; not of answers to requests with a cookie. SITES.md has finer rules. Default: a tenth of the time since Last-Modified, as in RFC 9111."`
	Compress       []string       `name:"compress" env:"PEER_COMPRESS" placeholder:"CODING,..." sep:"," type:"coding" group:"Cache" help:"Content codings, zstd and gzip, best first, for storing text that origins send uncompressed; repeat it or separate them by commas. Default: none, bodies stay as origins send them."`
	SiblingMaxAge  time.Duration  `name:"sibling-max-age" env:"PEER_SIBLING_MAX_AGE" placeholder:"TIME" default:"168h" type:"time" group:"Cache" help:"Maximum lifetime of objects that came from another peer, after which they are fetched from the origin. 0s: no limit. Default: ${default}."` // 0 = no limit
	SiblingCompare int            `name:"sibling-compare" env:"PEER_SIBLING_COMPARE" placeholder:"COUNT" default:"1000" type:"count" max:"1000000" group:"Cache" help:"Compare one in this many answers of other peers with the origin's, afterwards; 0: none. Default: ${default}."`              // 0 = none

	Store      string `name:"store" env:"PEER_STORE" placeholder:"DIR" group:"Cache" help:"Directory that keeps the objects; made if missing. Default: summarycache/NAME in the user's cache directory."`
	StoreSize  int64  `name:"store-size" env:"PEER_STORE_SIZE" placeholder:"SIZE" default:"1GiB" type:"size" min:"1MiB" group:"Cache" help:"Bytes that the store may use on disk, such as 512MiB or 10GiB. Default: ${default}."`                                                 // bytes
	MemorySize int64  `name:"memory-size" env:"PEER_MEMORY_SIZE" placeholder:"SIZE" default:"64MiB" type:"size" group:"Cache" help:"Bytes of memory for the objects: their index, some 300 bytes each, and copies of the popular ones, at least an eighth. Default: ${default}."` // bytes
	Digests    string `name:"digests" env:"PEER_DIGESTS" placeholder:"FILE" group:"Cache" help:"File that keeps the peers' digests of each other over a restart; none: no file. Default: digests, in the --store directory."`                                                     // "" = no file

	ConnectTimeout      time.Duration `name:"connect-timeout" env:"PEER_CONNECT_TIMEOUT" placeholder:"TIME" default:"60s" type:"time" min:"10ms" max:"24h" group:"Timeouts" help:"Limit for connecting to an origin or for a tunnel, TLS included. Default: ${default}."` // 0 = 60 s, as for the others
	ConnectionAge       time.Duration `name:"connection-age" env:"PEER_CONNECTION_AGE" placeholder:"TIME" default:"5m" type:"time" min:"1s" max:"24h" group:"Timeouts" help:"How old a connection to an origin may be when it gets a request. Default: ${default}."`
	FirstByteTimeout    time.Duration `name:"first-byte-timeout" env:"PEER_FIRST_BYTE_TIMEOUT" placeholder:"TIME" default:"60s" type:"time" min:"10ms" max:"24h" group:"Timeouts" help:"Limit from the end of a request until the origin's answer begins. Default: ${default}."`
	BetweenBytesTimeout time.Duration `name:"between-bytes-timeout" env:"PEER_BETWEEN_BYTES_TIMEOUT" placeholder:"TIME" default:"60s" type:"time" min:"10ms" max:"24h" group:"Timeouts" help:"Limit for a pause within an origin's answer. Default: ${default}."`
	ClientBodyTimeout   time.Duration `name:"client-body-timeout" env:"PEER_CLIENT_BODY_TIMEOUT" placeholder:"TIME" default:"60s" type:"time" min:"10ms" max:"24h" group:"Timeouts" help:"Limit for a pause within the body of a client's request. Default: ${default}."`
	SendTimeout         time.Duration `name:"send-timeout" env:"PEER_SEND_TIMEOUT" placeholder:"TIME" default:"60s" type:"time" min:"10ms" max:"24h" group:"Timeouts" help:"Limit for a pause in which a client reads nothing of its answer, once half of the connections are in use. Slow clients are never cut off. Default: ${default}."`

	ProxyClients []netip.Prefix `name:"proxy-client" env:"PEER_PROXY_CLIENT" placeholder:"PREFIX,..." sep:"," type:"network" group:"Limits" help:"Addresses or networks of the clients of a forward proxy, or of proxies in front of it; repeat it or separate them by commas. Default: this machine, and nobody behind a proxy on it."`
	PurgeClients []netip.Prefix `name:"purge-client" env:"PEER_PURGE_CLIENT" placeholder:"PREFIX,..." sep:"," type:"network" group:"Limits" help:"Addresses or networks from which PURGE requests are accepted, for all peers; repeat it or separate them by commas. Loopback, whole private networks and proxies of --trusted-proxies must be named twice, since everybody behind a proxy comes from there. Default: none."`
	ConnectPorts []uint16       `name:"connect-port" env:"PEER_CONNECT_PORT" placeholder:"PORT,..." sep:"," default:"443" type:"count" min:"1" max:"65535" group:"Limits" help:"Ports that a forward proxy opens tunnels to; repeat it or separate them by commas. Default: ${default}."`

	MaxHeaderSize  int64 `name:"max-header-size" env:"PEER_MAX_HEADER_SIZE" placeholder:"SIZE" default:"16KiB" type:"size" min:"4KiB" max:"1MiB" group:"Limits" help:"Bytes of the URL and the header fields of a client's request; a longer one is answered 431. It should not be more than what origins take. Default: ${default}."`
	MemoryLimit    int64 `name:"memory-limit" env:"PEER_MEMORY_LIMIT" placeholder:"SIZE" default:"0" type:"size" min:"32MiB" group:"Limits" help:"Bytes of memory that the process may take. Where that runs short, new requests, connections and digests are refused, and the rest goes on. Default: 0, the limit of the container or three quarters of the machine's memory, and at most GOMEMLIMIT."` // 0 = what the machine allows
	MaxMembers     int   `name:"max-members" env:"PEER_MAX_MEMBERS" placeholder:"COUNT" default:"16384" type:"count" min:"2" max:"16384" group:"Limits" help:"Peers of the cluster, this one included. Further ones are refused and named in the log, and purges that cannot reach them say so. Default: ${default}, the most there can be."`
	MaxConnections int   `name:"max-connections" env:"PEER_MAX_CONNECTIONS" placeholder:"COUNT" default:"0" type:"count" max:"1000000" group:"Limits" help:"Open connections of clients at a time; one address may have half of them. A further one replaces a silent or idle one. Default: 0, what the file descriptors and --memory-limit allow."`

	Objects        uint64        `name:"objects" env:"PEER_OBJECTS" placeholder:"COUNT" default:"0" type:"count" max:"10000000000" group:"Digest" help:"Objects that the digest is planned for. Default: 0, what fits the store at 32 KiB each. A peer that holds more plans a larger digest."` // at least 1
	FalsePositives float64       `name:"false-positives" env:"PEER_FALSE_POSITIVES" placeholder:"RATE" default:"0.001" type:"number" min:"1e-9" max:"0.5" group:"Digest" help:"Share of absent objects that the digest may claim in error, between 0 and 0.5. Default: ${default}."`
	Publish        time.Duration `name:"publish" env:"PEER_PUBLISH" placeholder:"TIME" default:"0s" type:"time" min:"10ms" max:"1h" group:"Digest" help:"Longest time until a change is published. Changes are batched for as long as that saves more than it costs. Default: 0s, which means at most 5 s."` // 0 = as gossip has it

	Admin           string        `name:"admin" env:"PEER_ADMIN" placeholder:"ADDR" default:"127.0.0.1:3129" type:"listener" example:"3129" group:"Operation" help:"Address for health, metrics and status. Keep it private. Default: ${default}."`
	AdminHosts      []string      `name:"admin-host" env:"PEER_ADMIN_HOST" placeholder:"NAME" sep:"," group:"Operation" help:"Host names that the admin port accepts, besides IP addresses and names without a dot; repeat it or separate them by commas. Others are refused, as protection against DNS rebinding."`
	AdminTokenFile  string        `name:"admin-token-file" env:"PEER_ADMIN_TOKEN_FILE" placeholder:"FILE" group:"Operation" help:"File with a token of at least 16 bytes that commands to the admin port may present. Without it they come by the Unix socket in the store's directory, as those of peer purge do, or with a token of peer open."`
	Profiles        string        `name:"profiles" env:"PEER_PROFILES" placeholder:"ON" default:"off" type:"choice" oneof:"on,off" group:"Operation" help:"on: the admin port serves profiles of the program, at /debug/pprof/. Default: ${default}."`
	AccessLog       string        `name:"access-log" env:"PEER_ACCESS_LOG" placeholder:"FILE" group:"Operation" help:"Write a line for each request to this file, which SIGHUP reopens; - for standard output. Default: none."` // "-" = standard output, "" = none
	AccessLogFormat string        `name:"access-log-format" env:"PEER_ACCESS_LOG_FORMAT" placeholder:"FORMAT" default:"combined" type:"choice" oneof:"combined,json" group:"Operation" help:"combined or json. Default: ${default}."`
	LogLevel        slog.Level    `name:"log-level" env:"PEER_LOG_LEVEL" placeholder:"LEVEL" default:"info" type:"level" oneof:"debug,info,warn,error" group:"Operation" help:"Least severe messages to log: debug, info, warn or error. Default: ${default}."`
	LogFormat       string        `name:"log-format" env:"PEER_LOG_FORMAT" placeholder:"FORMAT" default:"text" type:"choice" oneof:"text,json" group:"Operation" help:"text or json. Default: ${default}."`
	OTLP            string        `name:"otlp-endpoint" env:"PEER_OTLP_ENDPOINT" placeholder:"URL" group:"Operation" help:"Send traces to this OpenTelemetry collector, as OTLP over HTTP, such as http://127.0.0.1:4318. Default: what OTEL_EXPORTER_OTLP_ENDPOINT and related variables say, or none."`
	Drain           time.Duration `name:"drain" env:"PEER_DRAIN" placeholder:"TIME" default:"10s" type:"time" group:"Operation" help:"Time for requests under way to finish when the peer is stopped. Default: ${default}."`

	DrainDelay time.Duration `name:"drain-delay" env:"PEER_DRAIN_DELAY" placeholder:"TIME" default:"0s" type:"time" max:"1h" group:"Operation" help:"Time before --drain in which a peer that is stopped answers 503 at /readyz and serves on, so that balancers see it and send no more. Default: 0s."`

	// Secret is the first secret of SecretFile; nil = gossip is neither encrypted nor
	// authenticated. AcceptSecrets are accepted as well, while the secret of a cluster changes.
	Secret        []byte   `kong:"-"`
	AcceptSecrets [][]byte `kong:"-"`
	SecretShared  bool     `kong:"-"` // users other than the file's owner and group can read it

	PeerTLS      *peertls.Identity `kong:"-"` // of TLSCert, TLSKey and TLSCA; nil = HTTP between peers is plain
	Certificates []tls.Certificate `kong:"-"` // of HTTPSCert and HTTPSKey
	AdminToken   string            `kong:"-"` // "" = none

	Sites []proxy.Site `kong:"-"` // of the file; nil if Origin is set
	Rules rules.Set    `kong:"-"` // of the file, followed by those of DefaultTTL and Compress

	Warnings []string `kong:"-"` // of settings that do nothing, each with its line

	Traces       *url.URL          `kong:"-"` // where spans are posted to, as OTLP over HTTP; nil = nowhere
	TraceHeader  map[string]string `kong:"-"` // fields to send with them
	TraceTimeout time.Duration     `kong:"-"` // for one post; 0 = 10 s
}

// Advertised returns the host of Advertise, and its port; "" = that of Gossip.
func (c *Config) Advertised() (host, port string) {
	if host, port, err := net.SplitHostPort(c.Advertise); err == nil {
		return host, port
	}
	return c.Advertise, ""
}

// Reverse reports whether the peer is a reverse proxy.
func (c *Config) Reverse() bool { return c.Origin != nil || len(c.Sites) > 0 }

// Keep takes the settings with these names from old. It returns those that differed.
func (c *Config) Keep(old *Config, names []string) (differed []string) {
	now, before := reflect.ValueOf(c).Elem(), reflect.ValueOf(old).Elem()
	for i := range now.NumField() {
		name := now.Type().Field(i).Tag.Get("name")
		if !slices.Contains(names, name) {
			continue
		}
		if !reflect.DeepEqual(now.Field(i).Interface(), before.Field(i).Interface()) {
			differed = append(differed, name)
		}
		now.Field(i).Set(before.Field(i))
	}
	return differed
}
