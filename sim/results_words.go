package main

// What RESULTS.md says above the tables of a chapter.

const findingsWords = `
What went against us first. Times are left out: they depend on the machine. How whole systems compare is in the chapters on ways
of cooperating and on keeping digests in step; where each item of the documents is, in [DOCUMENTS.md](DOCUMENTS.md).
`

const tablesWords = `
Every number that Mitzenmacher's Tables I–VII and the false-positive tables of Summary Cache print, and those of the running
text, against the formulas they stand for. A value within one unit of its last printed digit agrees: it was rounded, perhaps
the other way, or cut off. What is left is wrong, and every wrong value betrays itself:

- **Table VI, rows z/n and z/(cn): the columns m/n = 12 and m/n = 32 are exchanged.** Each value is, to all of its digits, what
  the formula gives for the other column; k and f are those of the columns as printed; and real deltas, coded, have the sizes
  of the formula. The text's 2066.5 bytes for m/n = 32 are made of the exchanged value: 2075.9 is right, and with it the
  simulated mean of 2090 is as far above theory as the paper's other simulations are.
- **Summary Cache, m/n = 30, k = 15 and k = 16: the exponent is one too large.** f falls as m/n grows, and these two do not lie
  between those of m/n = 29 and m/n = 31.
- **Summary Cache, text to Figure 4: "the optimum case of 5 hash functions" at m/n = 10.** Its own table has fewer false
  positives at k = 6, 7 and 8.

A measured f is a count of false positives, or where those are too rare follows from the share of positions set; the note
says so.
`

const trialsWords = `
Filters of n = 10,000 keys with positions drawn independently and uniformly, as in the paper, coded by package arith's adaptive
coder. Means agree with m·H to a byte or two, deviations with the paper's; the paper's own sizes carry the overhead of its
program. The delta's mean settles the quarrel in the paper: it is the 2075.9 bytes of the formula, not 2066.5, which is less
than the logarithm of the number of such sets and so beyond any coder. Coded against the old filter, which the receiver has,
the same deltas take an eighth less.
`

const limitsWords = `
What the paper proves, and what it conjectures, in numbers:

- Section II-B: at half zeros f is the worst, and it tends to (1/2)^(z/n) as p goes to 1. It does so slowly: one hash over 93
  positions a key is 2.6 times the limit, and what comes nearer needs less than one hash.
- **Section IV conjectures that a delta is best as p goes to 1 for any c < 1/2. It is, and up to c = 0.69.** From there on a
  filter that is about half full has fewer false positives at the same size.
- **A delta coded with the old filter as context has a better limit: (1/2)^(z/cn) where the paper has (1/2)^(z/2cn).** Half of
  what the exclusive-or spends says which keys left, and a receiver who has the old filter need not be told that in full.
- **Section V: one hash is best for counting filters too, and then the counts are nearly free.** Of a message of 11.4 bits a key
  they are 0.006, since two keys seldom share a position, where ten hashes spend 8.5 bits on counts, and four bits a counter,
  sent as they are, 58. Package digest codes them to within 0.07 % of the entropy.

Who would be sent a counting filter? Not a sibling: it only asks. One who goes on in the publisher's place, and has to take
out what leaves: a restarted process, or a second machine that takes the cache over. A filter that can add and remove costs
it what a snapshot does.
`

const searchWords = `
Section III-A of the paper proposes a sorted list of positions where the array is too large, with interpolation search. It
keeps its promise of O(log log n) looks: a quarter to two fifths of those by halves. Each look far off is a wait for memory, of
which a search of a million positions has four or five, and a division each; the list is longer, too. Package digest divides
the positions into buckets by their leading bits: a look finds the bucket, and the rest of each position is as short as the
bucket is narrow.
`

const figuresWords = `
The first two are the paper's Figures 1 and 2: what is best uncompressed is worst compressed. The third is Figure 4 of Summary
Cache with its printed values. The next two are ours: what a set with a given false-positive rate costs on the wire in each
representation, and what an update costs per replaced key. One hash over a large array stays within 1.44 bits of the bound
at every rate, and a delta coded against the old set within about as much of its own. Rice-coded gaps are the honest rival of
the coder: at most an eighth of a bit behind. The last has what structures of today take above the bound. Each figure is in figures/ as SVG and PNG.
`

const rivalsWords = `
The paper's last question, whether the Bloom filter is the best structure for this, with what is known today. Against us first:

- **Sent once and never changed, a ribbon filter is smaller: 6.6 % above log2 1/f where one compressed hash is 11 %.** A
  change of one key changes all of it. A binary fuse filter of four places is 1 % larger than ours on the wire and 10 % smaller
  in memory; where f is above some 0.04 % it is smaller on the wire too (figure structures).
- **A perfect hash with fingerprints, which the lecture names as the smaller way, takes log2 1/f + 1.44 bits at its own
  bound: exactly what one compressed hash takes.** The one built here has 2.5 bits a key where the bound has 1.44, so that
  ours is smaller.
- To keep a copy in step none comes near. A replaced key takes 30 bits in ours; 40 in Rice code; 112 in the Bloom filter
  of least memory; 375 in a cuckoo table whose changes are coded as well as can be, as insertions into a table 95 % full move
  others about; 984 in a quotient filter, which shifts its neighbours. Static filters are sent again.
- A quotient filter holds quotients with remainders, which are the positions of one hash over slots times 2^13. Sent as that
  set, it is our message. Filters that grow, InfiniFilter and Aleph, are quotient filters with fingerprints of several lengths; ours
  is planned anew from the keys instead, which its publisher has.
- Not built, since their rows are known without: vacuum filters have the slots of cuckoo filters, at any number of keys, as the row here
  has; prefix filters cannot forget a key, so that they can follow no cache; BuRR is a ribbon filter with next to no overhead, at
  the bound's 13 bits and like all static ones sent again after each change. Of these three no library in Go was found (only
  C++ of their authors). Of xor and binary fuse filters, ribbon filters and rateless IBLT there are some, but FastFilter/xorfilter has
  fingerprints of 8, 16 and 32 bits: what is compared here has 13, so that f is equal.
- **A Bloomier filter gives every key its right value** and an absent one none, at the size of a static filter of that many more
  bits. The values in the order of one hash's positions take less on the wire.

Where nobody knows what the receiver has, or remembers what changed since, sketches of the difference need no base. PinSketch
takes 1.4 to 3.4 times our delta, and less than a snapshot until a fifth of the keys has changed; it must be told how many
differ, and its decoder takes the square of that. A rateless IBLT, which needs no number, is below a snapshot up to some 6 %.
They would serve peers that come back after their publisher has forgotten their version, and before a fifth of it has changed. The
exchange remembers changes for about as long as that, so that it has neither.
`

const usesWords = `
The other uses that the documents name, with their errors:

- **Set operations.** A union is exact. The intersection of two arrays says yes for up to f of the keys that are in one of
  them, as either does alone, and the difference denies as many: it is the only operation with false negatives. How many keys
  two sets share is known to about a thousandth, from the arrays alone.
- **Bloom joins.** A filter of 8 bits a key takes more than the keys themselves, for what it wrongly asks back; one of 16 bits
  a fifth less. Tuned as a message, one hash takes another 2 % off: what has to come back weighs more.
- **PlanetP's search.** Each further term divides the peers that are named in vain by three to five, not by 1/f: those that
  have all terms but one are the ones that err.
- **Attenuated and aggregated filters.** At the m of one cache a union of 27 is believed sixteen times as often for what it
  does not hold, and takes 38 % of the bytes of the digests; at the same f it takes 58 %, and what it saves is what the caches
  have in common. It then says only that somebody has it, somewhere behind that link. A peer that can afford its siblings' digests has
  the answer itself, so that gossip has no unions.
`

const hashingWords = `
At 10,000 keys the false positives hardly tell the schemes from independent hashes, except at k = 11 double hashing modulo a
power of two, whose steps may be even or zero, and the lecture's two hashes modulo a prime, where keys share whole sequences.
At 100 keys that decides: the lecture's scheme has ten times the false positives promised. Double hashing modulo 2^64 with an
odd step, which package digest uses, is second to enhanced double hashing among the cheap ones; with the one hash of the
planned geometry all are the same.

What a bad hash does is not subtle. The number of hashes that count falls to one, or positions crowd; and who knows the seed
can choose names that set k new positions each.
`

const countersWords = `
Four bits suffice, and Summary Cache's bound is right and some twenty times too careful. The claim that a false negative is
less likely than a reboot holds at the load that was planned for, and no longer when a cache has outgrown its filter: at a
load of four, some twenty turnovers are enough. A counter that stays full costs next to nothing and denies no key, so ours
do.
`

const systemsWords = `
Three real request traces over 4 and 16 caches, each of which holds a tenth of all unique objects (of their bytes, where the
trace has sizes) and evicts by LRU; testdata/README.md says where they come from and how requests are dealt. Two of the
traces number their requests instead of timing them: there a request is a second, and a note says so. A cache stores what it
fetches, from whomever, if it is no longer than a quarter of the cache, as a peer's store does, except that a key's owner
keeps the only copy: with two owners each has one, and a cache that is neither asks first the one and then the other. Groupcache's hot
caches take a ninth of each cache, and every tenth object that another cache owns. Shares are of all requests. False hit: a cache was
named that has no copy, counted for each that was asked. Stale: the copy is of another size. Missed: another cache had a copy
and none was found. ICP asks all by small queries, and then fetches. In the other ways a cache fetches from one candidate
after the other, and only a failed fetch counts as a query. A query with its answer is two messages. An update counts once for
each receiver, and has a header of 16 bytes in every way, about that of the running peer's shortest; where our delta does
not fit a datagram of 1,152, it is an advert, a request of 64 bytes and the body. Bytes are payload; the column of all bytes adds 28 for each message's
headers of IP and UDP, and the one behind it membership for ours, which finds its peers: counted in virtual time with headers, in and
out, 305 bytes a second and peer among 4 peers, 314 among 16 and 351 among 64 (go test ./gossip -run TestIdleBytes -v -wire.idle
4,16,64); in the other ways caches are given a list. An object's body is in no column of bytes; the share of requests for which one
went from a cache to another is.

A percentage behind a name is the share of new objects at which a cache publishes. **The row "ours" is the running peer's way**:
digests of package digest, planned for 0.01 false hits per lookup, published when the rule of gossip/exchange
says, with its defaults. It depends on the pace, so that the first trace's row is one at a real site's 0.03 requests a second,
and the others' at one a second; two more rows have the same requests come 100 and 1000 times as fast. Its delta is packed where that is shorter, as it is for a few changes. And as in a peer's store,
copies of what another cache has leave a full cache first, once they take more than a 32nd of it; in "copies as all else"
they leave like what the origin sent, as in all other ways; and "only on a second request" has a cache keep one only if it
remembers having been asked for it, of as many keys as it holds objects. Truncated hashes are a
list of those that came and of those that left, of 24 bits each or of so few that as many false hits are planned for as for
ours; their memory is that of the bare list. Cuckoo tables are 85 % full.

What they show:

- Cooperation is worth 10 to 27 points of hit ratio, and every way finds most of it. How fresh the digests are decides what is
  missed: at 1 %, up to a point; at 0.1 %, at most a quarter of that; ours misses 0.01 to 0.2 points.
- **Against us: at the traces' own pace membership costs more than all else.** At one request a second it is 1,220 bytes a request among
  4 caches and 5,030 among 16, several times ICP's questions; at a site's 0.03 it is not worth having. At 100 requests a second
  ours takes, with membership, 37 and 69 bytes a request among 4 caches and 137 and 233 among 16, of ICP's 158, 250, 888 and 1,342,
  and misses 0.2 to 0.4 points.
- ICP finds everything, and costs a round trip on every miss and more bytes in queries than directories, Summary Cache,
  hashes, cuckoo filters and ours in queries and updates together. Without membership ours takes 9 to 42 % of its bytes: more,
  the more often a change travels alone.
- **Truncated hashes are the strongest rival**, and the simplest. At the moments when ours publishes, mostly of a change or
  two, ours with copies as all else takes 1 to 3 % fewer update bytes than hashes of as few bits as planned at 4 caches, and 3
  to 5 % more at 16. An object that left takes half as many bits in ours; one that came takes
  as many, behind a byte that counts, and those 16 caches hardly get beyond filling. Where dozens of changes travel together
  coding pays: at 1 % and 4 caches of thousands of objects our digests take 6.3 and 7.9 bytes a request, against 8.1 and 10.9
  for those hashes and 9.4 and 12.2 for 24 bits; at 16 caches, with smaller updates, they take as much as those hashes or 5 %
  less, and on the small first trace 1 to 5 % more. Of thousands of objects a replica of ours takes 57 to 73 % of the memory of
  the bare list of those hashes, of the first trace's few up to 1.6 times as much.
- Against all else our digests have the fewest update bytes at the same share of new objects: at 1 % a fifth to six tenths
  of Summary Cache's 8 bits, a seventh to six tenths of cuckoo images. They take less memory than a cuckoo filter. Summary
  Cache's 8 bits take less, for 1.8 to 14 times as many false hits.
- Cuckoo filters have no more false hits than hashes of 24 bits. In a table that is not half empty each insertion moves others,
  so that images of buckets take as many bytes as the bits that flip in Summary Cache's 8 bits, or up to 1.7 times as many.
- **Against us: with the headers of IP, changes that travel alone are dear.** At one request a second ours sends 7 to 10 messages
  a request at 16 caches of the second and third trace, 369 and 547 bytes with headers (86 and 183 at 100 requests a second), where hashes at 1 % take 82 and 178
  and miss some tenths of a point. At the first trace's 4 caches, ours takes 16 of their 20. One owner per key takes 47 to 211
  everywhere, mostly of questions.
- Squid's digests take the least memory and cost up to 0.44 extra round trips a miss. Hourly misses what is new; every minute,
  each whole, costs more bytes than anything else.
- One owner per key has the highest total on the second trace, as objects are kept once only. It needs no digest and no
  memory, and sends four fifths of all requests, or more, to another cache. Where copies leave first, ours comes within half a
  point of it there, and is ahead on the other traces; copies as all else, which answer more requests locally, cost 3 points
  at 4 caches of the second trace, 0.7 at 16, and next to nothing on the others.
- Keeping a copy only on a second request has the total of letting copies leave first, but for one point at 4 caches of the second
  trace. At 16 caches it needs 14 to 32 % fewer update bytes, since less changes, and fetches 4 to 9 points more of all requests
  from another cache.
- Groupcache's hot caches bring 8 to 41 points of one owner's hits home, and cost up to 1.1 points of the total where room is
  short. Two owners per key halve what the caches hold together: 3 and 6 points less at 4 caches of the larger traces, for more
  than twice the messages. Ours, which keeps what is asked for where it is asked for, moves a fifth to a half of the bodies.
- Bursts: where twenty requests for a new object come within a tenth of a second, no digest is quick enough. Eight caches that
  collapse their own requests ask the origin 5.909 times for each object; asking the key's owner first reaches once, which is the
  least, for half a message a request, and fewer where requests come further apart.
`

const deltaWords = `
What it costs to tell a peer that holds the old filter of a cache's replaced objects, in bits for each, whole messages with
headers and checksums. A share c of a million keys was replaced since the last update. "standard" has the fewest bits in
memory for its f, "paper" the fewest on the wire with at most 64 bits a key in memory, and "ours" one hash and m = n/f, which
is never built as an array. Ours, coded given the old filter, is the smallest at every f and c, and within 2 % of the entropy.
Summary Cache's records of 32 bits a flip take 1.7 to 3.7 times as much, and two images of a cuckoo filter's 96-bit buckets 5 to
11 times.
`

const receiveWords = `
What a peer does for each delta that it gets: decode it, given the filter that it has, apply it, verify the state, and bring
the index up to date. All of it touches what changed: the pieces of the filter in which a position flipped, the nodes above
them, and the lines of the index. What still grows with n is that these are less often in the processor's caches, and the
root, which is copied once a delta.
`

const agesWords = `
Both sides know in which update each position came. What leaves a cache is mostly old, or, where eviction is choosy, mostly
new, so that an age would tell more cheaply which keys left. Of a third of a delta that says so it saves a third to six tenths
under LRU and a half to three quarters under FIFO: 10 to 14 % and 16 to 19 % of the delta's entropy. **Under the eviction that the peer has, otter's, it is 2 to
8 %**, and of whole messages of a few dozen keys 1 to 5 %.

It is not built. It would cost four bits a key in every replica, which has 9 to 13; a peer that joins by a snapshot knows no ages, and
would be sent them, four bits a key beside 11.4, or deltas of another coding until all that it got has left; and siblings could no longer take over
each other's replicas by what is in them alone. A cache whose eviction is FIFO, and which has no joiners, would gain most.
`

const neighboursWords = `
Caches of one catalogue resemble each other, and who joins a cluster fetches a snapshot of each. Coded given how many of those
fetched before have a position, by a real coder, they are **24 to 36 % shorter in clusters of 40 to 100 peers**, and 13 to 16 % in
one of 8; given a single other, 8 to 10 %.

It is not in version 1, although it is more than the 8 % that would have been enough. A publisher would have to hold, for each
receiver, the very versions that the receiver has of all others, which change every second, and be told which these are: some 24 bytes
for each. Each snapshot would be made for one receiver, a hundred milliseconds or more in place of one or two on both sides, where today its
bytes are made once, kept, and handed on by any peer. What is saved is saved once in a life: a hundred peers of 10,000 keys send a joiner
1.4 MB, of which it would spare 0.4, as much as a dozen minutes of deltas at 1 % a minute. A code for it can come later without moving
version 1: as a kind under a magic of its own, as filters in pieces have.
`

const piecesWords = `
Section II-B of the paper suggests, after McIlroy, to compress a filter in pieces, so that a lookup decompresses one of them. Here
the writer chooses their length, and an index before them says where each lies: a digest on a plain web server is asked for
one key by two range requests. Short pieces cost bytes, each some eight and what its coder can't share; the index grows as pieces get
shorter. The fewest bytes are read where the index is as long as a piece: near 3 KiB for a million keys, which is the length if
none is given. From ten million keys on, a reader that asks more than once keeps the index.
`

const memoryWords = `
A replica is a bitmap where that takes little more than a sorted set, and else a sorted set. A sorted set takes about
log2(m/n)+3 bits a key, what leads to its pieces included, and a lookup goes to one place in it; the list of 64-bit positions that the paper thinks of takes four
to seven times the memory and a search. A publisher's counters take several times what its digest does, and only on its own machine.
Times are of the machine that this was run on and are not compared by the test.
`

const lookupWords = `
A cluster in which each peer asks its index of all the others' digests, which together may name 0.1 peers in vain per lookup.
Caches hold objects of one catalogue, a hundred times as large as each of them, by popularity that falls with the rank to the
power of 0.9; or caches of sizes from a quarter to four times the mean, no two equal; or nothing in common. Times depend on
the machine and on what else it does, so that only those of one run compare.

What the layouts are, and why the index has the two it has:

- **One table over the space of keys** (index): what all peers' positions say of a key is in one cache line, as codes of about
  21 bits. It takes the least memory of all that answer at once for a thousand peers, and a lookup is the wait for that line.
  Popular positions become bitmaps of peers, which is why caches that overlap take less than those that do not.
- **Bit-sliced rows** (index, rows), for dense filters: k rows are k cache lines, and each has a bit for every peer. Up to a
  hundred peers they take less memory than the table and are nearly as fast; at a thousand they take as much and are several
  times slower. They stay for those who publish dense filters, whose geometry the index does not choose.
- **Postings** (a hash table from position to peer) are the simplest and fastest where peers are few and share little. They
  take twice the memory of the table, need one m for all peers, and positions that many peers have pile up before their
  neighbours: at a thousand peers that overlap, a lookup for a key that nobody has reads on past them. So they were dropped.
- **A loop** costs time in proportion to the peers, in whatever form the filters are.

From 10 to 1,000 peers a lookup takes longer where nothing is in the processor's caches (cold): about a quarter at 10,000 keys a
peer, and about a half at 100,000. Warm, it takes
some six times as long: the table of 10 peers stays there, that of 1,000 does not, and the difference is the wait for memory.
The rows of 40 and of 100 million keys are those of --more.
`

const exchangeWords = `
The engine of gossip/exchange in virtual time: what each of N peers sends and receives
to keep the digests of all others, planned for 0.01 candidates named in vain per lookup, and how long a change takes. Each publishes
after 10 ms for each peer, 0.1 to 1 s: there are no requests here that would say how long waiting is worth it (--wait). The
notes say what is modelled. 10,000 peers, and 1,000,000 objects, take minutes and are left to --peers and --objects.

- Without loss a change reaches everyone in less than a second in the median, also at 1,000 peers, for a fraction of what a
  snapshot every minute costs.
- Nearly all of it travels behind adverts: gets and fetched deltas are left for what was lost.
- Waiting saves bytes as long as more changes share what each publication costs (last table). Of a thousand peers that wait two
  seconds one receives half the bytes that it does at half a second, 0.38 of them with headers, and a change takes 0.8 s longer.
  From three seconds on there is little left to save.
- Where three datagrams in ten are lost, a repair costs a few hundred bytes against the snapshot's hundred thousand and more.
  The lag's tail is that of the streams, which have to resend as well.
`

const codecWords = `
The coders of package arith beside general ones: bytes over the limit log2 C(m,x), and speed beside klauspost's fse on the same
array in the same run. Automatic is what digests use: adaptive where the code is short, block where it is long. Sizes are the
same on every machine; speeds are of the one that ran this, perhaps with other work to do, and their ratios to fse travel
better. Arrays of eight bits a key have nothing to gain. On the others fse is the best of the general coders, 1 to 10 % over
the limit; Rice-coded gaps stay within 4 %. The block coder stays within 0.04 %.
`
