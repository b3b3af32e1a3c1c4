package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// facts are the numbers of OPERATING.md and the code that they come from: who
// changes the one is told of the other.
var facts = []struct{ says, file, code string }{
	{"the exit code of every command is 0 for done, 1 for failed and 2 for a mistake", "cmd/peer/cli.go", "// complain tells err to people and returns the exit code: 0 for none, 1 for\n// failure, 2 for misuse."},
	{"gives up instead, exit code 1", "cmd/peer/internal/node/join.go", `"no --join address answered within %s: %w"`},
	{"one for each 32 KiB of `--store-size`", "cmd/peer/internal/config/check.go", "meanObject = 32 << 10"},
	{"a hundred peers with 100,000 objects each, of which 1 % are replaced in a minute, one receives 10.5 kB/s", "sim/RESULTS.md", "| 1.054e+04 | 3.036e+05 | 3.47 |\n| 100 | 0 | out |"},
	{"2.8 kB/s of headers that it does not count, together 13.0 KiB/s", "digest/plan.go", "carryBytes  = 48 "},
	{"says 13.0 KiB/s", "cmd/peer/pages_operating_test.go", `"received 13.0 KiB/s "`},
	{"less than 450 B/s", "gossip/wire_test.go", "most := int64(450)"},
	{"at least 30 ms", "gossip/exchange/config.go", "defaultMinInterval = 30 * time.Millisecond"},
	{"at most 5 s", "gossip/exchange/config.go", "defaultInterval    = 5 * time.Second"},
	{"at least 16\nbytes", "cmd/peer/internal/config/secrets.go", "minSecret  = 16"},
	{"the log warns two weeks before", "cmd/peer/internal/node/certificate.go", "certificateSoon = 14 * 24 * time.Hour"},
	{"once\na minute for each sibling", "cmd/peer/internal/node/quiet.go", "quietFor = time.Minute"},
	{"a tenth of the time since, at most a day", "gossip/rfc9111/freshness.go", "heuristicShare = 10 "},
	{"a tenth of the time since, at most a day", "gossip/rfc9111/freshness.go", "maxHeuristic   = 24 * time.Hour "},
	{"each is 60 s by default", "cmd/peer/internal/config/settings.go", `env:"PEER_SEND_TIMEOUT" placeholder:"TIME" default:"60s"`},
	{"answered 408 (`detail=request-timeout`)", "cmd/peer/internal/cache/errors.go", `http.StatusRequestTimeout, "request-timeout"`},
	{"half a minute for the header of a request, and two minutes until its next one", "cmd/peer/internal/node/node.go", "ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute"},
	{"an eighth for gossip", "cmd/peer/internal/conn/shares.go", "descriptors/8"},
	{"at most 16,384 connections", "cmd/peer/internal/conn/shares.go", "mostClients = 16 << 10"},
	{"without a request for a second", "cmd/peer/internal/conn/limits.go", "unasked = time.Second"},
	{"Varnish's own default for connections is 3.5 s", operating, "| `connect_timeout` |"},
	{"whose clocks are more than a minute apart", "cmd/peer/internal/control/control.go", "Window = time.Minute"},
	{"65,536 purges\nand writes", "gossip/invalidation/engine.go", "defaultEntries = 1 << 16"},
	{"200 while every part gets on with its work, otherwise 503", "cmd/peer/internal/admin/health.go", "plain(w, http.StatusServiceUnavailable, text)"},
	{"no progress for 10 s though there was work", "cmd/peer/internal/node/health.go", "hangLimit  = 10 * time.Second"},
	{"`/healthz` says so with 200", "cmd/peer/internal/admin/health.go", "plain(w, http.StatusOK, text)"},
	{"`/healthz` says 503", "cmd/peer/internal/admin/health.go", "plain(w, http.StatusServiceUnavailable, text)"},
	{"200 when it takes requests, and what is degraded; otherwise 503", "cmd/peer/internal/admin/handler.go", `plain(w, http.StatusServiceUnavailable, s.State+"\n")`},
	{"It had 32 or\nmore false hits, more than hits, and over four times as many as its digest explains", "gossip/sibling/record.go", "quarantineLeast  = 32\n\tquarantineExcess = 4"},
	{"not asked for a minute, twice as long each further\ntime, up to 30 minutes", "gossip/sibling/record.go", "firstQuarantine  = time.Minute\n\tlastQuarantine   = 30 * time.Minute"},
	{"from 500 ms to three times that", "gossip/sibling/adapt.go", "deadlineMost = 3"},
	{"From a quarter of lost questions on", "gossip/sibling/adapt.go", "lostBearable = 0.25"},
	{"late by 125 ms or more", "gossip/sibling/adapt.go", "lateExcuses*c.late() >= c.cfg.Timeout"},
	{"half of the questions of three siblings or more are lost", "gossip/sibling/adapt.go", "most         = 3"},
	{"did not answer within 500 ms", "gossip/sibling/client.go", "defaultTimeout = 500 * time.Millisecond"},
	{"10,000 objects cost a peer half a second", "cmd/peer/internal/node/tags_test.go", "the target is of 10000"},
	{"more than 1,024 tags", "cmd/peer/internal/cache/tags.go", "maxTags = 1024"},
	{"where more than 32 peers", "gossip/invalidation/engine.go", "MaxConcerning = 32"},
	{"its tags (at most 256)", "cmd/peer/internal/proxy/purge.go", "MaxPurgeTags = 256"},
	{"answered 403 or 405.", "cmd/peer/internal/proxy/purge.go", "http.StatusMethodNotAllowed, "},
	{"The answer is 200 when all peers have done it, and 202,", "cmd/peer/internal/proxy/purge.go", "http.StatusAccepted"},
	{"for each URL at each peer, 16 at a time", "cmd/peer/internal/cache/staleelsewhere.go", "staleAtOnce    = 16"},
	{"not again for\n5 s", "cmd/peer/internal/cache/staleelsewhere.go", "staleNowhere   = 5 * time.Second"},
	{"for half a second, doubling up to\n30 s", "gossip/sibling/record.go", "firstSuspension = 500 * time.Millisecond\n\tlastSuspension  = 30 * time.Second"},
	{"6 to 7 s after it died among up to ten peers", "gossip/death_test.go", "{3, 8, 7 * time.Second, 9 * time.Second},\n\t\t{10, 8, 8 * time.Second, 10 * time.Second}"},
	{"8 s among forty (medians; at worst 8 and 13 s)", "gossip/death_test.go", "{40, 8, 10 * time.Second, 17 * time.Second}"},
	{"adds 13 bytes to each datagram", "gossip/seal.go", "tagBytes    = 12\n\tshortBytes  = 1 + tagBytes"},
	{"peers at 13.3 requests a second, which take 0.36 of what ICP would without one, take 0.49 with it", "gossip/wire_test.go", "{\"Zipf, a secret\", zipf, 13.3, 0, testSecret}, 0.08, 0.50"},
	{"Its digest is kept for 10 minutes", "gossip/exchange/config.go", "defaultKeepDead     = 10 * time.Minute"},
	{"Every 12 s peers try again", "gossip/config.go", "defaultRejoin  = 12 * time.Second"},
	{"as long as they take more than a\n32nd of it", "cmd/peer/internal/store/copies.go", "copiesShare = 32"},
	{"waits for that one for\n2 s at most", "gossip/sibling/coalesce.go", "defaultFlights = 2 * time.Second // CoalescerConfig.Wait"},
	{"an eighth less than it holds", "cmd/peer/internal/store/store.go", "maxBytes-held+held/8"},
	{"to grow again after 10 minutes", "cmd/peer/internal/store/store.go", "fullFor = 10 * time.Minute"},
	{"10 peers, 9 of 1,000 misses ask in vain", operating, "| 10 | 950 B/s | 13.9 MiB | 0.009 |"},
	{"| 3128, TCP | `--listen` |", "cmd/peer/internal/config/settings.go", `default:"127.0.0.1:3128" group:"Cache" help:"Address for the HTTP requests`},
	{"| 7946, TCP and UDP | `--gossip` |", "cmd/peer/internal/config/settings.go", `default:"127.0.0.1:7946" group:"Cluster" help:"Address for gossip`},
	{"| 3129, TCP | `--admin` |", "cmd/peer/internal/config/settings.go", `default:"127.0.0.1:3129" group:"Operation" help:"Address for health`},
}

var step = regexp.MustCompile(`^\| \d \|`) // of a table of steps

var number = regexp.MustCompile(`\d[\d.,]*`)

// Each number of the page's prose belongs to a fact, and each fact is so.
func TestOperatingNumbers(t *testing.T) {
	prose := pageOf(t, operating).prose
	rest := prose
	for _, f := range facts {
		says := anyBlanks(f.says)
		if !says.MatchString(prose) {
			t.Errorf("%s does not say %q", operating, f.says)
		}
		rest = says.ReplaceAllString(rest, "")
		text, err := os.ReadFile(filepath.Join(root, f.file))
		if err != nil {
			t.Fatal(err)
		}
		if !anyBlanks(f.code).Match(text) {
			t.Errorf("%s says %q, but %s has no %q", operating, f.says, f.file, f.code)
		}
	}
	for line := range strings.Lines(codeSpan.ReplaceAllString(rest, "")) {
		if strings.HasPrefix(line, "| ") && strings.Contains(line, "MiB") {
			continue // a row of sizes, which has a test of its own
		}
		line = step.ReplaceAllString(line, "")
		for _, n := range number.FindAllString(link.ReplaceAllString(line, ""), -1) {
			t.Errorf("%s: nothing vouches for the %s in %q", operating, n, strings.TrimSpace(line))
		}
	}
}

// anyBlanks matches a text however its words are set apart.
func anyBlanks(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}
