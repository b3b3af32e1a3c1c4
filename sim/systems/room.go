// Package systems simulates whole systems: caches that cooperate, and digests that are kept in step.
package systems

import "github.com/summarycache/summarycache/sim/lab"

// Experiments are those of the package.
var Experiments = []lab.Experiment{systemsExperiment, exchangeExperiment}
