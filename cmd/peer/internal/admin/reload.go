package admin

import (
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

// A ReloadRequest asks a peer to read its configuration again.
type ReloadRequest struct {
	DryRun bool `json:"dry_run"` // change nothing, and say what would change
}

// A ReloadReport says what a reload has changed, or would change.
type ReloadReport struct {
	Changed []Change `json:"changed"` // now
	Waiting []Change `json:"waiting"` // differs from what runs, and takes effect at the next start
}

// A Change is a setting with two values, as `peer validate` shows them.
type Change struct {
	Setting string `json:"setting"`
	Was     string `json:"was"`
	Now     string `json:"now"` // the same as Was if it names files whose contents have changed
}

// A Reloading is the last attempt to reload the configuration.
type Reloading struct {
	At    time.Time `json:"at"`    // of the start of the process if there was none
	Good  time.Time `json:"good"`  // when the configuration that is in effect was read
	Error string    `json:"error"` // why the attempt was refused; "" = it was not
}

// ReloadText formats a report for people.
func ReloadText(r ReloadReport) string {
	if len(r.Changed)+len(r.Waiting) == 0 {
		return "Nothing differs from what runs.\n"
	}
	t := table.New("SETTING", "EFFECT", "WAS", "IS")
	row := func(c Change, effect string) {
		now := c.Now
		if now == c.Was {
			now = "the same, with other contents"
		}
		t.Row(c.Setting, effect, excerpt(c.Was), excerpt(now))
	}
	for _, c := range r.Changed {
		row(c, "now")
	}
	for _, c := range r.Waiting {
		row(c, "next start")
	}
	return t.Text("")
}

// excerpt returns the first line of a value, and of that as much as fits a table.
func excerpt(value string) string {
	line, rest, _ := strings.Cut(value, "\n")
	if runes := []rune(line); len(runes) > 40 {
		return string(runes[:39]) + "…"
	}
	if rest != "" {
		line += " …"
	}
	return line
}
