//go:build unix

package main

import (
	"errors"
	"flag"
	"io/fs"
	"os/exec"
	"regexp"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutant"
)

var poisonMutants = flag.String("mutants", "", "put those defects of the list back in whose names match the `regexp`, and send 2000 mutated requests to each")

// A poisonMutant is a defect by which one client decides what others get.
type poisonMutant struct {
	name  string
	shows string // what the report says of it: a regexp
	edits []mutant.Edit
}

const (
	fieldsFile  = "cmd/peer/internal/canonical/fields.go"
	urlFile     = "cmd/peer/internal/canonical/url.go"
	requestFile = "cmd/peer/internal/proxy/request.go"
	blameFile   = "cmd/peer/internal/cache/blame.go"
	storing     = "gossip/rfc9111/freshness.go"
)

// cookieStored has a rule's ttl store what a cookie asked for: alone it hides behind what is known of
// paths, and they behind it.
var cookieStored = mutant.Edit{"cmd/peer/internal/rules/response.go", ` && q.Header["Cookie"] == nil, false`, ", false"}

var poisonMutantList = []poisonMutant{
	{"part-stored", `range: status 206`, []mutant.Edit{{storing, "r.Status == 206 || ", ""}, {"cmd/peer/internal/cache/fetch.go", "(!f.part || a.status == http.StatusOK) && ", ""}}},
	{"error-to-range-stored", `an origin's answer to any range`, []mutant.Edit{{"cmd/peer/internal/cache/fetch.go", "(!f.part || a.status == http.StatusOK) && ", ""}}},
	{"complaint-stored", `an error to (a range|large fields)`, []mutant.Edit{{storing, " || requestStatus(r.Status)", ""}}},
	{"expectation-stored", `an error to Expect`, []mutant.Edit{{storing, "416, 417,", "416,"}, {fieldsFile, `name == "Expect" || safe`, "safe"}}},
	{"content-stored", `content.*: status 415`, []mutant.Edit{{storing, "414, 415,", "414,"}, {fieldsFile, ` || safe && strings.HasPrefix(name, "Content-") && f.readings[name] != kept`, ""}}},
	{"vary-ignored", `accept: (body|field Content-Encoding)`, []mutant.Edit{{"gossip/rfc9111/identity.go", "	return slices.Compact(fields)\n", "	return fields[:0]\n"}}},
	{"vary-invalid", `an invalid Vary`, []mutant.Edit{{storing, `name == "*" || !token(name)`, `name == "*"`}}},
	{"underscores", `a field with underscores`, []mutant.Edit{{fieldsFile, "case !letters(name):", "case false:"}}},
	{"forwarded-any", `key: x-forwarded-(prefix|port|server|path|uri|scheme|ssl|protocol)`, []mutant.Edit{{fieldsFile, `strings.HasPrefix(strings.TrimPrefix(name, "X-"), "Forwarded"), `, ""}}},
	{"forwarded-for", `key: x-forwarded-for`, []mutant.Edit{{fieldsFile, "relayed[name] && trusted", "relayed[name]"}}},
	{"original-url", `key: x-original`, []mutant.Edit{{fieldsFile, `, strings.HasPrefix(name, "X-Original")`, ""}}},
	{"method-override", `key: x-http-method`, []mutant.Edit{{fieldsFile, "case as == ofSafe && method != http.MethodGet && method != http.MethodHead:", "case as == ofSafe:"}}},
	{"ambiguous-paths", `a private page`, []mutant.Edit{cookieStored, {urlFile, "return inspect(rawPath(u))&ambiguous != 0", "return false"}}},
	{"dot-segments", `a private page`, []mutant.Edit{cookieStored, {urlFile, `looks&(ambiguous|unusual) == unusual && strings`, "false && strings"}}},
	{"queries-alike", `queries that the origin tells apart`, []mutant.Edit{{urlFile, "out.RawQuery = Query(u.RawQuery)", "out.RawQuery = u.RawQuery"},
		{"gossip/rfc9111/identity.go", `strings.ReplaceAll(u.RawQuery, "\n", "%0A")`, `strings.NewReplacer("\"", "%22", "<", "%3C", ">", "%3E").Replace(u.RawQuery)`}}},
	{"method-no-token", `a method that is no token`, []mutant.Edit{{requestFile, "!httpguts.ValidHeaderFieldName(r.Method)", "!httpguts.ValidHeaderFieldName(\"x\") || r.Method == \"\""}, {blameFile, `r.Method == "" || httpguts`, "true || httpguts"}}},
}

// TestMutantsFit checks that each defect of the list fits the code.
func TestMutantsFit(t *testing.T) {
	for _, m := range poisonMutantList {
		if err := mutant.Check(root, m.edits); errors.Is(err, fs.ErrNotExist) {
			t.Skip("the source is not here: ", err)
		} else if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// TestMutants checks that 2000 mutated requests find each defect of the list.
func TestMutants(t *testing.T) {
	if *poisonMutants == "" {
		t.Skip("takes half a minute for each defect: -mutants . tries all")
	}
	for _, m := range poisonMutantList {
		if ok, err := regexp.MatchString(*poisonMutants, m.name); err != nil {
			t.Fatal(err)
		} else if !ok {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			binary, err := mutant.Build(t.TempDir(), root, m.edits)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(binary, "-test.run", "MutatedRequests$", "-mutations", "2000").CombinedOutput()
			found := regexp.MustCompile(`(?m)^ *\d+ +\d+ times +.*(` + m.shows + ").*$").Find(out)
			if err == nil || found == nil {
				t.Fatalf("not found by 2000 mutated requests: %v\n%.3000s", err, out)
			}
			t.Logf("the first, and how many: %s", found)
		})
	}
}
