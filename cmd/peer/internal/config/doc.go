// Package config turns flags, PEER_* variables and a YAML file into the checked
// configuration of a peer.
//
// One struct, [Config], declares every setting once. Flags, variables, file keys and bounds
// follow from its tags; settings.help has what the help says. A flag overrides its PEER_* variable, which overrides the file, which
// overrides the default. [Flags.Load] reports all mistakes at once, each with its place, before
// anything is started. [Flags] does the same for the flags of other commands.
package config
