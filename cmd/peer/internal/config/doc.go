// Package config turns flags, PEER_* variables and a YAML file into the checked
// configuration of a peer.
//
// One struct, [Config], names every setting once; flags, environment, file
// keys, bounds and help follow from its tags. A flag overrides its PEER_* variable,
// which overrides the file, which overrides the default. [Flags.Load]
// reports every mistake at once, each with the place that it was made in, before
// anything is started. [Flags] does the same for the flags of other commands.
package config
