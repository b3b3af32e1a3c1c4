// Package rivals measures other structures and coders beside those of packages digest and arith.
package rivals

import (
	"context"

	"github.com/summarycache/summarycache/sim/lab"
)

// Room is the door to the package.
var Room = lab.Room{
	Experiments: []lab.Experiment{codecExperiment, rivalsExperiment, memoryExperiment},
	Figures:     []func(context.Context, *lab.Job) (lab.Figure, error){structuresFigure},
}
