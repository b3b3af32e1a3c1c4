package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A ReloadRequest asks a peer to read its configuration again.
type ReloadRequest struct {
	DryRun bool `json:"dry_run"` // change nothing, and say what would change
}

// A ReloadReport says what a reload has changed, or would change.
type ReloadReport struct {
	Changed []Change `json:"changed"`
}

// A Change is a setting with two values, as `peer validate` shows them.
type Change struct {
	Setting string `json:"setting"`
	Was     string `json:"was"`
	Now     string `json:"now"` // the same as Was if it names files whose contents have changed
}

// A ReplaceRequest asks for the program file in place of the one that runs.
type ReplaceRequest struct{}

// A ReplaceReport says that the program file was accepted.
type ReplaceReport struct {
	Program string `json:"program"` // the path of the file
}

// An Attempt is the last one to change what runs: the configuration or the program.
type Attempt struct {
	At    time.Time `json:"at"`    // of the start of the process if there was none
	Good  time.Time `json:"good"`  // when what is in effect was read
	Error string    `json:"error"` // why it has not succeeded, or not yet; "" = it has
}

// ReloadText formats a report for people.
func ReloadText(r ReloadReport) string {
	if len(r.Changed) == 0 {
		return "Nothing differs from what runs.\n"
	}
	var out strings.Builder
	for _, c := range r.Changed {
		if c.Now == c.Was {
			fmt.Fprintf(&out, "%s: %s, with other contents\n", c.Setting, c.Now)
			continue
		}
		change := marked("- ", c.Was, c.Now) + marked("+ ", c.Now, c.Was)
		fmt.Fprintf(&out, "%s:\n%s", c.Setting, cmp.Or(change, "the same lines in another order\n"))
	}
	return out.String()
}

// marked returns the lines of a value that are not in another one, each whole and behind a mark.
func marked(mark, value, other string) (text string) {
	others := strings.Split(other, "\n")
	for line := range strings.SplitSeq(value, "\n") {
		if line != "" && !slices.Contains(others, line) {
			text += mark + line + "\n"
		}
	}
	return text
}
