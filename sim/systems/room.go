// Package systems simulates whole systems: caches that cooperate, digests that are kept in step,
// and lookups in those of many peers.
package systems

import "github.com/summarycache/summarycache/sim/lab"

// Room is the door to the package.
var Room = lab.Room{Experiments: []lab.Experiment{systemsExperiment, lookupExperiment, exchangeExperiment, agesExperiment, neighboursExperiment}}
