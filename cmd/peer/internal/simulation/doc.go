// Package simulation runs several whole peers in one process and in virtual time. Everything around
// them fails by a seeded schedule, and each answer to a client is checked against the promises. The
// package consists of tests; this comment describes them.
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
//	        bits, full, smaller and larger,      lengths, crawls, is late, down, busy;
//	        lost at a power cut (disktest)       changes, with and without validators
//
// The network is memnet, the bubble is that of testing/synctest, the disk is in memory, and each
// peer has its own wall clock. The origin's body is a function of URL, version and
// variant. So each byte that a client gets can be checked, and whether
// its version may still be served follows from the time when the origin last sent it.
//
// # What is checked
//
// For each request:
//   - The body is that of its version, and complete.
//   - The origin sent this version no longer ago than its lifetime allows. Three seconds are added,
//     since Age has whole seconds at each cache on the way. stale-while-revalidate and
//     stale-if-error extend that; stale-if-error only while something fails.
//   - Age is no less than the time since the origin last sent that version.
//   - After a write or purge at a peer, this peer answers with nothing older, nor does any peer that
//     has received the invalidation. After a reload the peer answers with nothing older.
//     A purge is of a URL or of a tag, hard or soft. What is answered afterwards the origin has given or
//     confirmed since the purge began, also if it is asked for within the same second. After
//     a soft purge a stale copy may be served where stale ones may be.
//   - An answer that the origin gives one client, by its cookie or credentials, reaches no other.
//   - No field of a connection passes: neither those that Connection names nor Keep-Alive, TE and others,
//     to the origin as to clients. What a request names there counts as absent, also for Vary.
//   - What an odd request provoked at a strict origin reaches nobody else: one with a large field, an
//     unusual range, another spelling, fields by which proxies and frameworks are misled, and others. So are
//     the mutated requests that peers are tested with outside (package mutation).
//   - A member that lies changes nothing but the answers for pages that it lied about, until what
//     siblings gave may not be served any longer, and no lie outlives a hard purge of all peers. What is true but
//     unusable, breaks off, crawls, does not match its checksums or claims everything changes no answer at all.
//     Its removals and what it says as the owner of keys only cost time: nothing takes longer than 5 s,
//     or 10 s of what it sends itself.
//   - When all is over, each peer has a new page, and each that was lied about, as the origin has it.
//   - Of pages that all peers are asked for in turn, the origin sends each about once: a tenth more at most
//     of all. In these runs nothing happens that costs hits.
//   - That an origin is asked for the first time, late in a run, and that a store is the
//     smallest that can be set, makes no difference to any of this. Neither does a client by HTTP/2 that opens its
//     window seconds late.
//   - A process that has little memory, or less for a while, refuses what is new: a request gets status 503 or its
//     connection ends, and a client that takes nothing makes room for another. Where the index of the objects lacks
//     memory, the store shrinks, and its digest with it. What it answers is as right as ever. At
//     rest requests hold nothing, and at the end connections do not either.
//   - Bits that turn in what gossip sends, and saved digests that are damaged, cut off or another peer's when
//     a peer starts, change no answer. At rest every replica is right.
//   - A disk on which others leave ever less room, and more again, changes no answer.
//   - The answer is neither cut short nor an error while the origin could be asked.
//   - The answer ends within 5 s if no fault affects the request, and within a bound in any case. The
//     peer gives up clients that stop reading or sending.
//
// Faults between peers and on disks do not affect a request in this sense: they cost hits, not
// answers.
//
// At rest, every digest equals its store, every replica equals its digest, and no object is being
// written. At the end, no goroutine, socket, open file or temporary file is left, and every turned bit
// that was read has been noticed.
//
// In a sweep of more than ten seeds, the heap has grown since the tenth by no more than 8 MiB plus
// 32 KiB a run. In a sweep of many, each fault and each kind of answer has occurred (see
// world.sometimes).
//
// A peer measures durations with a steady clock, so jumps of the wall clock don't change them. But
// after a restart, the age of a stored copy follows from the wall clock alone. If that was set back,
// the copy may be served for so much longer, which is allowed.
//
// # How to use it
//
//	go test ./cmd/peer/internal/simulation                          # a few seeds
//	go test ./cmd/peer/internal/simulation -run Seeds -seeds 1000 -from 5000
//	go test ./cmd/peer/internal/simulation -run Seeds -from 3000 -for 60m -shrink 0 -timeout 0
//	go test ./cmd/peer/internal/simulation -run Seeds -from 17 -seeds 1 -full   # with every peer's log
//	cd cmd/peer/internal/simulation/replay && go run . -from 17 -seeds 1        # the same each time
//	cd cmd/peer/internal/simulation/replay && go test -run Exactly -long -timeout 0  # ten seeds, each twice
//
// Without replay, the Go scheduler influences a run, so a seed that failed need not fail each time.
// But this is ten times as fast, and can use the race detector. Replay compiles the tests to
// WebAssembly and gives them a clock that counts and random bytes from a seed; a run is then the
// same to the last line of the log. -order runs the same schedule with another order of goroutines.
// What a seed means changes with the code here, with the code of the peer and with the Go release.
//
// After a failure, a smaller schedule for it is printed in JSON. It has as few faults and requests
// as -shrink runs could find, and -schedule FILE runs it. -only REGEXP looks for some kinds of
// violation and ignores the others. A run that never ends is stopped after -stuck, and prints all
// goroutines.
//
// To add a fault: a line in faultKinds, and a case in befall that says which requests it affects. To
// add a promise: a case in judge, digests or leftovers, and a fault in cmd/peer/FAULTS.md that breaks it.
//
// # What it finds
//
// cmd/peer/FAULTS.md lists faults with the seeds that find them, and says how to search for others. Seeds change with
// the schedules, and sometimes from run to run: a replay also tries the seeds that follow.
//
// Sweeps of the code at the time, on one of two busy cores, GOMAXPROCS=1 and -parallel 1. Of what a
// sweep found, the defects of peers are mended; the others were errors of the checks:
//
//	November 2026   seeds              core-hours   found
//	22              1 to 1169          0.17         see the log of this directory
//	23              1170 to 4919       0.55         1418: Age did not include a request's time of waiting, so a response
//	                                                that went stale meanwhile was served.
//	                                                Checks: 1418, 1817: late answers moved the time of the last answer back
//	23              5170 to 7169       0.25         Checks: 5911: a late answer of the origin outlived the run. 6900: an answer
//	                                                to a frozen peer was judged by the time of its arrival
//	23              7170 to 19419      1.27         Checks: 10677: an origin that resets had sent a byte before. 15015: an
//	                                                object still arriving, after a minute without a byte, was in the digest
//	                                                and not in the store
//	23              19420 to 27669,    1.81         19803, 43596: when the origin broke off before the header, followers got an
//	                40000 to 47999                  error, too. 5025, 40707, 40980: a sibling that was to continue a body could
//	                                                take any time. 40799: the disk failed, then the sibling that sent the rest.
//	                                                47869: an origin without ranges was not read up to the missing byte
//	23              27670 to 31369,    1.3          100189, 100269, 101076: parts without a validator were cut, or as slow as
//	                48000 to 51799,                 their sibling. Checks: 51009, 31052: the delay of a slow client, and of an
//	                100000 to 121000 in part        origin that was slow before, counted against the peer
//	23              31420 to 44719,    2.7          55016: a short part over two blocks, the second of which was corrupt.
//	                51850 to 64899                  57321: an answer that a write kept out of the store was not finished.
//	                                                Checks: 52774, 52847, 53652, 36118: the end of a body that no client waits
//	                                                for, a slow origin, a false length, another fetch before the first byte
//	24              1 to 600,          0.3          nothing, after fetch, store, sibling and gossip had become simpler
//	                70000 to 70999
//
// The sweeps up to the 23rd took the eight core-hours that a release needs.
//
// With the adversary, and then with what runs short or is damaged:
//
//	27              41, 3000 to 3642   0.11         41: a member's lie broke off, and all who waited were held for a stale copy that
//	                                                the liar sent byte by byte. 3371, 3606: a sibling that passed on what a slow
//	                                                origin sent was taken for slow
//	28              10000 to 10899     0.16         Checks: 10335: a lie about another page has that page's tags
//	28              1 to 180, 20000 to 0.17         21170: a client whose answer was not stored got a 502 when a sibling's body was wrong.
//	                20384, 21000 to 21428,          Checks: 20063 and others: who asks last is refused for want of memory, too.
//	                23000 to 23259                  20255: the liar broke off in what all versions begin with
//	28              50000 to 54280     0.65         Checks: 50282: a mutated POST has the origin send trailers. 51187: a purge at
//	                                                one peer alone leaves lies at its siblings, which the origin confirms. 53284: a
//	                                                sibling that crawls was receiving the body still, so that it may be 500 bytes/s
//	28              61000 to 61367     0.1          61287: who wanted the whole of a sliced object got 206 with a part. 61202, 61246:
//	                                                an answer from slices was cut where the disk was full or failed
//	28              62000 to 62378,     1.9          70326: a large object whose answers were one client's got 502. 70114: a clock put
//	                70000 to 73260,                 right undid a soft purge. 70784: an answer in slices ended at an origin without
//	                80000 to 82240,                 ranges. 80864: Age of what is relayed. 81188: a silent sibling was asked again.
//	                90000 to 90853                  90334: a sibling's stale copy was not marked
//	28              100000 to 100882,  1.1          102575: where the disk failed within a slice and the store took no other, the
//	                101000 to 106300,               answer was cut. 103407: an origin refused the client whose fetch others had
//	                300000 to 300549                joined, and all were cut. 104735: 4,096 bytes before a pause were held back.
//	                                                106106: a slice with a bad block was cut if the origin knew no ranges
//	28              110000 to 110970   0.1          Checks: 110201: with less memory than can be set, gossip had one stream, and
//	                                                peers that took each other for dead did not find each other again
//	28              120000 to 122600,  0.74         121291: a file that a request opened after the store's Close stayed open.
//	                200000 to 202569,               Checks: of 6 MiB all is reserved since gossip has more, and peers refused all
//	                1 to 355,                       requests, so that nothing was stored: limits begin at 8 MiB
//	                203000 to 203363
//	28              210000 to 210299,  0.5          nothing, with these limits
//	                211000 to 212597,
//	                221000 to 222252
//	28              230000 to 232618,  1.4          240980: a large object without a strong validator was cut if the disk was bad and
//	                240000 to 242079,               the origin broke off. Checks: 250093: a slice for which another client
//	                250000 to 250611,               waited came from a sibling that crawled and was receiving it still
//	                260000 to 260639
//
// # What is not simulated
//
// Real sockets, sendfile, kernel TLS, file locks, real file systems, and several processes. A slow
// disk: its time would stand still while a goroutine waits for a lock. The timers of a frozen
// process. Data races in replay. The end-to-end tests of cmd/peer have most of these.
package simulation
