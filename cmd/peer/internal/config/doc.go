// Package config turns flags, PEER_* variables and a YAML file into the checked
// configuration of a peer.
//
// One struct, [Settings], names every setting once; flags, environment, file
// keys and help follow from it. A flag is stronger than its PEER_* variable,
// which is stronger than the file, which is stronger than the default. [Load]
// reports every mistake at once, each with the place that it was made in, before
// anything is started.
package config
