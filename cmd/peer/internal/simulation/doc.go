// Package simulation runs whole peers, several of them, in one process and in virtual time,
// with everything around them misbehaving by a seeded schedule, and holds what clients got
// against what was promised to them. It is all tests; this is what they are about.
//
//	clients                  a purge now and then, here or everywhere
//	that leave, stop reading,    |
//	or stop sending              v
//	    |               +------ peer ------+        the rest of the cluster
//	    | HTTP          | node.Start, all  |  gossip, HTTP between siblings
//	    +-------------->| of it: store,    |<------------------------------> peers
//	                    | cache, proxy,    |   lost, doubled, late packets,
//	                    | gossip, admin    |   partitions, crawling and
//	                    +--+-----------+---+   broken streams; frozen, killed,
//	                       |           |       restarted hosts
//	                 disk  |           | HTTP
//	        errors, short  |           +--------> origin
//	        writes, turned v                     stalls, cuts, resets, lies about
//	        bits, full, lost at a power cut      lengths, crawls, is late, down, busy;
//	        (package disktest)                   changes, with and without validators
//
// The network is memnet, the bubble one of testing/synctest, the disk one in memory, the
// wall clock of each peer its own. The origin's body is a function of URL, version and
// variant, so that each byte which a client gets can be told right from wrong, and whether
// its version may still be served follows from when the origin last gave it.
//
// # What is checked
//
// For each request: the body is that of its version, whole; the version was the origin's no
// longer ago than its freshness allows (three seconds more, for ages are whole seconds at each
// cache on the way), or than stale-while-revalidate or stale-if-error do, these only in trouble;
// its Age is no less than the time since the origin last gave that version;
// after a write or purge at a peer that peer answers with nothing older, nor does another one
// that was told of it; the answer is not cut
// and no error while the origin could be asked; it ends within 5 s where nothing is in the way of
// it, and within bounds in any case; clients that stop reading or sending are given up. What goes on between peers
// and on disks is never in the way: it costs hits, not answers.
//
// At rest: every digest equals its store, and everybody else's copy of it; nothing is being
// written. At the end: no goroutine, socket, open or temporary file is left, and what was read
// with bits turned was noticed.
//
// Over a sweep of more than ten seeds: the heap is what it was after the first ten, but for
// 8 MiB and 32 KiB a run. Over one of many: each fault and each way of answering happened (see world.sometimes).
//
// Wall clocks jump while what a peer has lived through is timed by a steady clock; a copy
// that outlives a restart is aged by the wall clock alone, and so may be served for longer by
// as much as that was put back. That much is allowed.
//
// # How to use it
//
//	go test ./cmd/peer/internal/simulation                          # a few seeds
//	go test ./cmd/peer/internal/simulation -run Seeds -seeds 1000 -from 5000
//	go test ./cmd/peer/internal/simulation -run Seeds -from 17 -seeds 1 -full   # with every peer's log
//	cd cmd/peer/internal/simulation/replay && go run . -from 17 -seeds 1        # the same each time
//	go test ./cmd/peer/internal/simulation -run Mutations -mutate . -timeout 0  # can it find things?
//
// Natively the Go scheduler has a say, so a seed that failed need not fail each time; but it is
// ten times as fast as in replay, and has the race detector. Replay compiles the tests to
// WebAssembly and gives them a clock that counts and random bytes from a seed; a run is then
// the same to the last line of the log. -order gives the same schedule another order of
// goroutines. What a seed means changes with the code here, with the code of the peer and with
// the Go release.
//
// A failure is followed by a smaller schedule for it, in JSON, with as few faults and requests
// as -shrink runs could find; -schedule FILE runs that. -only REGEXP looks for some kinds of
// violation and disregards the others. A run that computes for ever ends after -stuck, with all
// goroutines.
//
// To add a fault: a line in faultKinds, a case in befall that says whose trouble it is (or
// nobody's), and nothing else. To add a promise: a case in judge, digests or leftovers, and
// the fault that breaks it to the list of mutations.
//
// # What it finds
//
// Each mutation, how it shows, and the time by the clock until it did on a shared, busy core,
// from seed 1 on. Counts of seeds differ with every change of the schedules.
//
//	unverified-reads     body     4 s       no-resume            cut      5 s
//	bad-object-stays     digest   4 s       slow-sender          held     1 s
//	bad-block-cuts       cut      8 s       older-confirms       body     2 s
//	unwritable-store     cut     30 s       stall-for-ever       hung     3 s
//	clock-put-right      age     14 s       no-takeover          slow    19 s
//	crawling-sibling     slow    33 s       resume-blindly       body   178 s
//	slow-reader          held  seed 2       wall-clock-ages      seed 46
//	first-byte           hung  seed 31
//
// Not shown on these schedules: filter-hang, compare-once (not within 1,000
// seeds before threeSources), late-private-commit (not within 734 before writeWithin),
// late-commit, tombstones, digest-leak, eof-with-bytes.
//
// # What is not simulated
//
// Real sockets, sendfile and kernel TLS, file locks, real file systems, several processes; a
// disk that is slow (its time would stand still while somebody waits for a lock); a frozen process's own
// timers; data races in replay. The end-to-end tests of cmd/peer have those.
package simulation
