package papers

import (
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// call runs the command line with the experiments of this room.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	p := lab.Program{Experiments: lab.Registry{}.Add(Experiments...), Chapter: func(string) string { return "" }}
	code = p.Run(args, &out, &errs)
	return code, out.String(), errs.String()
}
