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

const forwardedFile = "cmd/peer/internal/proxy/forwarded.go"

var poisonMutantList = []poisonMutant{
	{"part-stored", `range: status 206`, []mutant.Edit{{"gossip/rfc9111/freshness.go", "r.Status == 206 || ", ""}}},
	{"vary-ignored", `accept: (body|field Content-Encoding)`, []mutant.Edit{{"gossip/rfc9111/identity.go", "	return slices.Compact(fields)\n", "	return fields[:0]\n"}}},
	{"original-url", `key: x-original-url`, []mutant.Edit{{forwardedFile, `"X-Original-Url", `, ""}}},
	{"forwarded-for", `key: x-forwarded-for`, []mutant.Edit{{forwardedFile, "misleading[name] || relayed[name] && !trusted || overriding", "misleading[name] || overriding"}}},
	{"method-override", `key: x-http-method`, []mutant.Edit{{forwardedFile, "overriding[name] && (", "false && ("}}},
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
