// Command buildcache is a build cache for a team: every machine that builds has one, finds what others have built, and
// needs no server.
//
//	buildcache serve --address 10.0.0.2 --join 10.0.0.1:7946 --secret-file team.secret
//	GOCACHEPROG="buildcache go" go build ./...
//	CCACHE_REMOTE_STORAGE=http://127.0.0.1:8085 make
//	bazel build --remote_cache=http://127.0.0.1:8085 //...
//
// An entry, which says what an action made, is a line of text: the SHA-256 of the output and a signature (entry.go).
// The output is stored once under its SHA-256 (server.go). For Go a short program answers the go command from files
// that are named by their SHA-256 (gocache.go).
//
// # What is believed
//
// Outputs are checked: whoever sends other bytes is found out by their SHA-256, and nothing of them is used. Entries
// can't be checked, since only a build says what an action makes. They are signed by a key that follows from the secret
// of the cluster, so those of strangers are refused, whatever way they came. What a member signs is believed by all:
// whoever steals the secret, or may write to the port at 127.0.0.1 of one machine, can have all others use outputs of
// his choice. Machines that build strangers' changes are therefore a cluster of their own.
//
// Outputs travel in clear, and everyone who reaches the port of --service can read what is stored.
package main
