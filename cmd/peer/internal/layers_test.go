package internal

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/summarycache/summarycache/"
	root   = "../../.."
)

// layers is the module's layout: what the code of each directory may import, of
// this module, of other modules, and of the network ("net" stands for net, all
// below it and crypto/tls). Arrows point up the page. Tests may import more.
var layers = []struct {
	dir     string
	imports string
	without string // of the standard library
}{
	{dir: "arith"},
	{dir: "digest/bloom"},
	{dir: "digest", imports: "arith digest/bloom github.com/cespare/xxhash/v2"},
	{dir: "digest/index", imports: "digest"},
	{dir: "digest/squid", imports: "digest"},
	// It has no carrier and no clock.
	{dir: "digest/feed", imports: "digest", without: "os time"},

	// The engine gets the time and messages from its caller.
	{dir: "gossip/internal/wire", without: "os sync"},
	{dir: "gossip/internal/backoff"},
	{dir: "gossip/internal/background"},
	{dir: "gossip/exchange", imports: "digest gossip/internal/backoff gossip/internal/wire", without: "os sync"},
	{dir: "gossip/invalidation", imports: "digest gossip/internal/wire", without: "os sync"},
	{dir: "gossip/memnet", imports: "net"},
	{dir: "gossip/limitlog"},
	// What stands between the network and memberlist, which nothing else sees.
	{dir: "gossip/internal/secrets", imports: "net digest gossip/exchange"},
	{dir: "gossip/internal/guard", imports: "net gossip/exchange gossip/internal/wire github.com/hashicorp/memberlist"},
	{dir: "gossip/internal/removals", imports: "gossip/exchange gossip/internal/background gossip/invalidation"},
	// What this module's programs see of a node beyond its promised names.
	{dir: "gossip/insider", imports: "net digest gossip/exchange"},
	{dir: "gossip", imports: "net digest digest/index gossip/exchange gossip/invalidation gossip/limitlog gossip/internal/background gossip/internal/guard gossip/internal/removals gossip/internal/secrets " +
		"gossip/internal/wire digest/bloom gossip/insider github.com/hashicorp/memberlist"},

	// The rules of caches: functions of requests, responses and times.
	{dir: "gossip/rfc9111", imports: "net github.com/dunglas/httpsfv", without: "os context io net"},
	{dir: "gossip/peering", imports: "net gossip/invalidation gossip/rfc9111"},
	// How requests reach origins and siblings, whoever sends them.
	{dir: "gossip/http1", imports: "net gossip/rfc9111 golang.org/x/net/http/httpguts"},
	// Siblings are asked by whoever locates them, of whatever caches.
	{dir: "gossip/sibling", imports: "net gossip gossip/http1 gossip/internal/backoff gossip/internal/wire gossip/invalidation gossip/rfc9111 gossip/insider gossip/peering"},
	// The memory of a process, divided among its parts.
	{dir: "gossip/httpcache/budget", imports: "golang.org/x/sys/unix golang.org/x/sys/windows"},
	// What a cache and its stores say to each other.
	{dir: "gossip/httpcache/bodies", imports: "github.com/cespare/xxhash/v2"},
	{dir: "gossip/httpcache/memstore", imports: "gossip/httpcache/bodies"},
	// The store knows nothing of HTTP, siblings or digests.
	{dir: "gossip/httpcache/diskstore/disktest", imports: "gossip/httpcache/diskstore"},
	{dir: "gossip/httpcache/diskstore", imports: "gossip/httpcache/bodies gossip/httpcache/budget github.com/cespare/xxhash/v2 github.com/maypok86/otter/v2 golang.org/x/sys/unix"},
	// The cache knows siblings and any store. Only a Member knows how siblings are found.
	{dir: "gossip/httpcache/engine", imports: "net gossip/http1 gossip/httpcache/bodies gossip/internal/background gossip/invalidation gossip/rfc9111 gossip/sibling gossip/peering github.com/dunglas/httpsfv golang.org/x/net/http/httpguts golang.org/x/sys/unix"},
	{dir: "gossip/httpcache", imports: "net digest gossip gossip/http1 gossip/httpcache/bodies gossip/httpcache/engine gossip/invalidation gossip/rfc9111 gossip/sibling gossip/peering"},

	{dir: "cmd/peer/internal/health"},
	// How answers leave, whatever they are.
	{dir: "cmd/peer/internal/conn", imports: "net gossip/http1 gossip/httpcache/budget golang.org/x/net/http/httpguts golang.org/x/sys/unix"},
	// Traces of requests, whoever answers them; nothing else sees OpenTelemetry.
	{dir: "cmd/peer/internal/tracing", imports: "net go.opentelemetry.io/otel/attribute go.opentelemetry.io/otel/codes " +
		"go.opentelemetry.io/otel/propagation go.opentelemetry.io/otel/sdk/resource go.opentelemetry.io/otel/sdk/trace " +
		"go.opentelemetry.io/otel/trace"},
	// What a request means, for everything that sees it: pure functions.
	{dir: "cmd/peer/internal/canonical", imports: "net gossip/rfc9111 golang.org/x/net/http/httpguts", without: "os context io net time"},
	// Those that may change something, at every port.
	{dir: "cmd/peer/internal/authority", imports: "net cmd/peer/internal/canonical"},
	// What an operator says of caching: functions of requests and responses.
	{dir: "cmd/peer/internal/rules", imports: "net gossip/invalidation gossip/rfc9111 cmd/peer/internal/canonical github.com/expr-lang/expr github.com/expr-lang/expr/ast github.com/expr-lang/expr/file", without: "os context io net"},
	{dir: "cmd/peer/internal/coding", imports: "net gossip/rfc9111 github.com/klauspost/compress/gzip github.com/klauspost/compress/zstd", without: "os context net"},
	// The request path knows a Locator, not the gossip behind it.
	{dir: "cmd/peer/internal/proxy", imports: "net gossip/httpcache/bodies gossip/httpcache/engine cmd/peer/internal/authority cmd/peer/internal/canonical cmd/peer/internal/coding cmd/peer/internal/conn cmd/peer/internal/rules gossip/http1 gossip/invalidation gossip/rfc9111 gossip/sibling gossip/httpcache/diskstore cmd/peer/internal/table cmd/peer/internal/tracing golang.org/x/net/http/httpguts gossip/peering"},

	// What the benchmark of the request path is held against, and what loads it.
	{dir: "cmd/peer/internal/proxy/benchfloor", imports: "net"},
	{dir: "cmd/peer/internal/proxy/benchload", imports: "net"},
	{dir: "cmd/peer/internal/accesslog", imports: "cmd/peer/internal/proxy"},
	// What peers ask of each other besides objects, the Squids beside them, and TLS to both.
	{dir: "cmd/peer/internal/control", imports: "net gossip/peering"},
	{dir: "cmd/peer/internal/squid", imports: "net digest/squid gossip/http1 gossip/rfc9111 gossip/sibling gossip/peering"},
	{dir: "cmd/peer/internal/file"},
	{dir: "cmd/peer/internal/opening", imports: "net cmd/peer/internal/authority"},
	{dir: "cmd/peer/internal/peertls", imports: "net cmd/peer/internal/file cmd/peer/internal/opening gossip/http1 gossip/sibling"},
	{dir: "cmd/peer/internal/peertls/certtest"},
	{dir: "cmd/peer/internal/sd", imports: "net golang.org/x/sys/unix"},

	{dir: "cmd/peer/internal/table"},
	{dir: "cmd/peer/internal/plan", imports: "arith digest digest/bloom"},
	{dir: "cmd/peer/internal/origin", imports: "net github.com/cespare/xxhash/v2"},
	{dir: "cmd/peer/internal/replay", imports: "net cmd/peer/internal/origin sim/workload " +
		"gossip/rfc9111"},
	{dir: "cmd/peer/internal/config", imports: "net digest gossip/invalidation gossip/rfc9111 digest/bloom gossip/insider cmd/peer/internal/canonical cmd/peer/internal/coding cmd/peer/internal/file cmd/peer/internal/peertls cmd/peer/internal/proxy cmd/peer/internal/rules golang.org/x/net/http/httpguts github.com/alecthomas/kong github.com/goccy/go-yaml github.com/goccy/go-yaml/ast " +
		"github.com/goccy/go-yaml/lexer github.com/goccy/go-yaml/parser github.com/goccy/go-yaml/token"},
	{dir: "cmd/peer/internal/admin", imports: "cmd/peer/internal/authority gossip gossip/sibling net gossip/exchange gossip/httpcache/budget gossip/httpcache/engine cmd/peer/internal/health cmd/peer/internal/proxy cmd/peer/internal/rules gossip/httpcache/diskstore cmd/peer/internal/table " +
		"github.com/prometheus/client_golang/prometheus github.com/prometheus/client_golang/prometheus/collectors " +
		"github.com/prometheus/client_golang/prometheus/promhttp"},
	// Here the parts become a peer.
	{dir: "cmd/peer/internal/node", imports: "net digest digest/squid gossip gossip/exchange gossip/invalidation cmd/peer/internal/accesslog cmd/peer/internal/admin " +
		"cmd/peer/internal/authority gossip/http1 gossip/httpcache/budget gossip/httpcache/engine cmd/peer/internal/config cmd/peer/internal/conn cmd/peer/internal/control cmd/peer/internal/health gossip/limitlog cmd/peer/internal/opening cmd/peer/internal/peertls " +
		"cmd/peer/internal/proxy gossip/sibling cmd/peer/internal/squid gossip/httpcache/diskstore cmd/peer/internal/table cmd/peer/internal/tracing gossip/peering"},
	// Requests for tests alone, and a package that consists of tests.
	{dir: "cmd/peer/internal/mutation"},
	{dir: "cmd/peer/internal/simulation"},
	{dir: "cmd/peer/internal/demo", imports: "net cmd/peer/internal/admin cmd/peer/internal/config cmd/peer/internal/node " +
		"cmd/peer/internal/origin cmd/peer/internal/replay cmd/peer/internal/table sim/workload gossip/exchange gossip/httpcache/engine gossip/rfc9111"},
	{dir: "cmd/peer", imports: "net digest digest/bloom github.com/alecthomas/kong github.com/alecthomas/mango-kong github.com/jotaen/kong-completion cmd/peer/internal/admin gossip/httpcache/budget cmd/peer/internal/config " +
		"cmd/peer/internal/demo cmd/peer/internal/file cmd/peer/internal/node cmd/peer/internal/plan cmd/peer/internal/proxy cmd/peer/internal/sd gossip/httpcache/diskstore cmd/peer/internal/table " +
		"sim/caches sim/workload"}, // plan --trace replays a log over simulated caches

	// Requests for demo, replay and the simulator.
	{dir: "sim/workload", imports: "net github.com/cespare/xxhash/v2 github.com/klauspost/compress/zstd"},
	// The simulator opens no socket.
	{dir: "sim/cputime"},
	// Each room has one door, and none knows another.
	{dir: "sim/lab", imports: "digest digest/bloom"},
	// Caches that cooperate, for sim systems and peer plan.
	{dir: "sim/caches", imports: "digest gossip/exchange sim/lab sim/workload"},
	{dir: "sim/papers", imports: "arith digest digest/bloom sim/lab"},
	{dir: "sim/systems", imports: "digest digest/index gossip/exchange sim/caches sim/cputime sim/lab sim/workload"},
	{dir: "sim", imports: "sim/lab sim/papers sim/systems"},
}

// TestLayers compares the imports of every directory with the layout, both ways:
// what a line allows and nothing uses is taken off it.
func TestLayers(t *testing.T) {
	found := imports(t, root)
	for _, l := range layers {
		allowed, used := strings.Fields(l.imports), found[l.dir]
		if used == nil {
			t.Errorf("%s: no such package", l.dir)
		}
		for _, path := range used {
			if name, counts := layerName(path); counts && !slices.Contains(allowed, name) || slices.Contains(strings.Fields(l.without), path) {
				t.Errorf("%s imports %s", l.dir, path)
			}
		}
		for _, name := range allowed {
			if !slices.ContainsFunc(used, func(path string) bool { got, _ := layerName(path); return got == name }) {
				t.Errorf("%s may import %s and does not", l.dir, name)
			}
		}
		delete(found, l.dir)
	}
	for dir := range found {
		t.Errorf("%s has no place in the layout", dir)
	}
}

// TestLayersPage: ARCHITECTURE.md has every arrow between packages of this module that the layout allows.
func TestLayersPage(t *testing.T) {
	const page, head = "../ARCHITECTURE.md", "| package | imports |\n| --- | --- |\n"
	short := func(dir string) string { return "`" + strings.TrimPrefix(dir, "cmd/peer/") + "`" }
	var want strings.Builder
	for _, l := range layers {
		var to []string
		for _, name := range slices.Sorted(strings.FieldsSeq(l.imports)) {
			if first, _, _ := strings.Cut(name, "/"); name != "net" && !strings.Contains(first, ".") {
				to = append(to, short(name))
			}
		}
		if len(to) > 0 {
			want.WriteString("| " + short(l.dir) + " | " + strings.Join(to, ", ") + " |\n")
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("%s has no table of imports", page)
	}
	got, after, _ := strings.Cut(rest, "\n\n")
	if got+"\n" == want.String() {
		return
	}
	if !*update {
		t.Fatalf("%s does not have the layout's arrows: go test ./cmd/peer/internal -run LayersPage -update", page)
	}
	if err := os.WriteFile(page, []byte(before+head+want.String()+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// layerName is what an import is called in the layout, if it counts there.
func layerName(path string) (name string, counts bool) {
	if path == "net" || path == "crypto/tls" || strings.HasPrefix(path, "net/") {
		return "net", true
	}
	first, _, _ := strings.Cut(path, "/")
	return strings.TrimPrefix(path, module), strings.Contains(first, ".")
}

// ownModule reports whether a directory is a module of its own.
func ownModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// imports returns what the files of each directory import, but for tests.
func imports(t *testing.T, root string) map[string][]string {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || ownModule(path)):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		found[dir] = append(found[dir], "") // there is a package, whatever it imports
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if !slices.Contains(found[dir], name) {
				found[dir] = append(found[dir], name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
