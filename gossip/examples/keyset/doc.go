// Command keyset says which keys a large set has, to clients that have only a web server to ask: the store paths of a
// binary cache, the layers of a registry, the lines of a list.
//
//	nix-store --query --requisites /run/current-system | keyset make --kind nix /srv/set    # again each day
//	keyset has http://server/set /nix/store/...  # 0 if all are there, 1 if not
//	keyset follow http://server/set copy         # the same files here: first a snapshot, then what has changed
//
// The server is nginx, S3 or anything else that answers range requests.
// A set is a snapshot in pieces, a delta from each of the last days, and a manifest that names them (files.go). A
// client reads the manifest, and for each key one piece. Whoever has many keys to look up follows. With --kind sha256 a
// key is the SHA-256 in a line (sha256:..., blobs/sha256/..., /cas/...), with nix the hash of a store path or narinfo.
//
// Ten million store paths (go test -v -run Table -full; two busy cores):
//
//	make                                       6 to 9 s of CPU
//	a path on the server, in pieces of 3 kB    12.3 bits
//	has                                        the manifest and one range request, 4.3 kB together
//	a day in which 0.1 % of the paths change   41 kB
//
// What false positives cost: for one absent key in a thousand (--rate) a client is told that it is there, asks the
// server, and is told the truth. As a set grows by up to a tenth the rate grows as much; then it is planned anew, and
// followers take a snapshot. What staleness costs: a key that came since the last make is said to be absent, and built
// or fetched elsewhere; one that went is asked for in vain. No key that was there at the last make is ever said to be
// absent.
//
// Whoever writes to the web server is believed.
package main
