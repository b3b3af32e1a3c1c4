// Package papers has the tables, figures and simulations of the source documents, and what they
// say of filters and deltas, beside what package digest reaches.
package papers

import "github.com/summarycache/summarycache/sim/lab"

// Experiments are those of the package.
var Experiments = []lab.Experiment{tablesExperiment, trialsExperiment, limitsExperiment, figuresExperiment}
