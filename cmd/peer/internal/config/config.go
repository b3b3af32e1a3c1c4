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
// PEER_* variables, and keys of the YAML file; settings.help says what each is for.
// [Flags.Load] checks them and sets the other fields. A Config is plain data: copy it freely.
type Config struct {
	File string `name:"config"`

	// The cluster. Port 0 is any free one, here and for Listen, HTTPSListen and Admin.
	Name        string        `name:"name"`
	Cluster     string        `name:"cluster"`
	Gossip      string        `name:"gossip" default:"127.0.0.1:7946" type:"listener" example:"7946"`
	Advertise   string        `name:"advertise"`                               // see Advertised; "" = the host of Listen and Gossip
	Join        []string      `name:"join" sep:"," type:"join" example:"7946"` // as gossip.Config has it
	Zone        string        `name:"zone"`
	ZoneCost    time.Duration `name:"zone-cost" default:"0s" type:"time"`
	KeepDigests string        `name:"keep-digests" default:"all" type:"choice" oneof:"all,none"`
	SecretFile  string        `name:"secret-file"`
	SquidPeers  []string      `name:"squid-peer" sep:"," type:"address" example:"3128"` // none twice
	TLSCert     string        `name:"tls-cert"`
	TLSKey      string        `name:"tls-key"`
	TLSCA       string        `name:"tls-ca"`

	Listen         string         `name:"listen" default:"127.0.0.1:3128" type:"listener" example:"3128"`
	HTTPSListen    string         `name:"https" type:"listener" example:"443"`
	HTTPSCert      []string       `name:"https-cert" sep:","`
	HTTPSKey       []string       `name:"https-key" sep:","`
	Origin         *url.URL       `name:"origin" type:"origin"` // nil, without Sites: a forward proxy
	PreserveHost   string         `name:"preserve-host" default:"off" type:"choice" oneof:"on,off"`
	PassFields     []string       `name:"pass-field" sep:"," type:"field"`
	TrustedProxies []netip.Prefix `name:"trusted-proxies" sep:"," type:"network" exact:"yes"`
	ProxyProtocol  []netip.Prefix `name:"proxy-protocol" sep:"," type:"network" exact:"yes"`

	DefaultTTL     *time.Duration `name:"default-ttl" type:"seconds"`
	Compress       []string       `name:"compress" sep:"," type:"coding"`
	SiblingMaxAge  time.Duration  `name:"sibling-max-age" default:"168h" type:"time"`                // 0 = no limit
	SiblingCompare int            `name:"sibling-compare" default:"1000" type:"count" max:"1000000"` // 0 = none

	Store      string `name:"store"`
	StoreSize  int64  `name:"store-size" default:"1GiB" type:"size" min:"1MiB"` // bytes
	MemorySize int64  `name:"memory-size" default:"64MiB" type:"size"`          // bytes

	// Limits in time; 0 = the default.
	ConnectTimeout      time.Duration `name:"connect-timeout" default:"60s" type:"time" min:"10ms" max:"24h"`
	ConnectionAge       time.Duration `name:"connection-age" default:"5m" type:"time" min:"1s" max:"24h"`
	FirstByteTimeout    time.Duration `name:"first-byte-timeout" default:"60s" type:"time" min:"10ms" max:"24h"`
	BetweenBytesTimeout time.Duration `name:"between-bytes-timeout" default:"60s" type:"time" min:"10ms" max:"24h"`
	ClientBodyTimeout   time.Duration `name:"client-body-timeout" default:"60s" type:"time" min:"10ms" max:"24h"`
	SendTimeout         time.Duration `name:"send-timeout" default:"60s" type:"time" min:"10ms" max:"24h"`

	ProxyClients []netip.Prefix `name:"proxy-client" sep:"," type:"network"`
	PurgeClients []netip.Prefix `name:"purge-client" sep:"," type:"network"`
	ConnectPorts []uint16       `name:"connect-port" sep:"," default:"443" type:"count" min:"1" max:"65535"`

	MaxHeaderSize  int64 `name:"max-header-size" default:"16KiB" type:"size" min:"4KiB" max:"1MiB"`
	MemoryLimit    int64 `name:"memory-limit" default:"0" type:"size" min:"32MiB"` // 0 = what the machine allows
	MaxMembers     int   `name:"max-members" default:"16384" type:"count" min:"2" max:"16384"`
	MaxConnections int   `name:"max-connections" default:"0" type:"count" max:"1000000"`

	Objects        uint64        `name:"objects" default:"0" type:"count" max:"10000000000"` // at least 1
	FalsePositives float64       `name:"false-positives" default:"0.001" type:"number" min:"1e-9" max:"0.5"`
	Publish        time.Duration `name:"publish" default:"0s" type:"time" min:"10ms" max:"1h"` // 0 = as gossip has it

	Admin           string        `name:"admin" default:"127.0.0.1:3129" type:"listener" example:"3129"`
	AdminHosts      []string      `name:"admin-host" sep:","`
	AdminTokenFile  string        `name:"admin-token-file"`
	Profiles        string        `name:"profiles" default:"off" type:"choice" oneof:"on,off"`
	AccessLog       string        `name:"access-log"` // "-" = standard output, "" = none
	AccessLogFormat string        `name:"access-log-format" default:"combined" type:"choice" oneof:"combined,json"`
	LogLevel        slog.Level    `name:"log-level" default:"info" type:"level" oneof:"debug,info,warn,error"`
	LogFormat       string        `name:"log-format" default:"text" type:"choice" oneof:"text,json"`
	OTLP            string        `name:"otlp-endpoint"`
	Drain           time.Duration `name:"drain" default:"10s" type:"time"`
	DrainDelay      time.Duration `name:"drain-delay" default:"0s" type:"time" max:"1h"`

	// Secret is the first secret of SecretFile; nil = gossip is neither encrypted nor
	// authenticated. AcceptSecrets are accepted as well, while the secret of a cluster changes.
	Secret        []byte   `kong:"-"`
	AcceptSecrets [][]byte `kong:"-"`
	SecretShared  bool     `kong:"-"` // users other than the file's owner and group can read it

	PeerTLS      *peertls.Identity `kong:"-"` // of TLSCert, TLSKey and TLSCA; nil = HTTP between peers is plain
	Certificates []tls.Certificate `kong:"-"` // of HTTPSCert and HTTPSKey
	AdminToken   string            `kong:"-"` // "" = none
	Digests      string            `kong:"-"` // the file in Store that keeps the peers' digests of each other; "" = none

	Sites []proxy.Site `kong:"-"` // of the file; nil if Origin is set
	Rules rules.Set    `kong:"-"` // of the file, followed by those of DefaultTTL and Compress

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
