// Package papers has the tables, figures and simulations of the source documents, and what they
// say of filters and deltas, beside what package digest reaches.
package papers

import (
	"context"

	"github.com/summarycache/summarycache/sim/lab"
)

// Room is the door to the package.
var Room = lab.Room{
	Experiments: []lab.Experiment{
		tablesExperiment, trialsExperiment, limitsExperiment, hashingExperiment, countersExperiment, deltaExperiment,
	},
	Figures: []func(context.Context, *lab.Job) (lab.Figure, error){
		func(context.Context, *lab.Job) (lab.Figure, error) { return hashesFigure(1, 8), nil },
		func(context.Context, *lab.Job) (lab.Figure, error) { return hashesFigure(2, 16), nil },
		func(context.Context, *lab.Job) (lab.Figure, error) { return ratioFigure(), nil },
		sizesFigure, deltasFigure,
	},
}
