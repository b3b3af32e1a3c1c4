package planted_test

// A fault is planted in the code, beside what it breaks.
type fault struct {
	name   string // that planted.Fault is compared with
	kind   string // of mistake
	what   string // goes wrong
	places int    // where it is compared; 0 = one
	from   origin
	found  finder
}

// An origin is how a fault came onto the list.
type origin string

const (
	history origin = "history" // it was in the code once, or nearly
	attack  origin = "attack"  // by such a one clients could decide what others get
	drawn   origin = "drawn"   // its function was drawn, see TestDraw
	chosen  origin = "chosen"
)

// A finder is the cheapest thing that is known to find a fault.
type finder struct {
	test  string // names of tests: a regexp
	in    string // their package; "" = that of the fault
	added bool   // they were added because nothing found the fault

	seed uint64 // of the simulation: the first that is known to find it
	seen string // the kind of violation by which it does; "" = the process hangs

	request int    // number of a mutated request
	shows   string // what the report says of it: a regexp
}

func test(name string) finder            { return finder{test: name} }
func added(name string) finder           { return finder{test: name, added: true} }
func seed(n uint64, seen string) finder  { return finder{seed: n, seen: seen} }
func request(n int, shows string) finder { return finder{request: n, shows: shows} }
func (f finder) of(dir string) finder    { f.in = dir; return f }

// faults are all that are planted.
var faults = []fault{
	{name: "filter-hang", kind: "endless loop", what: "a look-up in a digest that goes round for ever", places: 2, from: history, found: test("TestFindGoesNoFurtherThanInsert")},
	{name: "stall-for-ever", kind: "no deadline", what: "an origin that stalls once takes its URL away from everyone", places: 2, from: history, found: seed(6, "hung")},
	{name: "no-takeover", kind: "missed step", what: "those who join a stalled body wait for its deadline", from: history, found: seed(15, "slow")},
	{name: "no-resume", kind: "missed step", what: "an answer is cut where its source breaks off", from: history, found: seed(4, "cut")},
	{name: "copy-mixed", kind: "skipped check", what: "a body goes on with one that says it is another version", from: history, found: seed(5, "body")},
	{name: "resume-blindly", kind: "skipped check", what: "a body goes on with that of another version", from: history, found: seed(2, "body")},
	{name: "part-cut", kind: "missed step", what: "a part of a large object is cut where its source breaks off", from: history, found: test("TestPartGoesOn")},
	{name: "part-forgotten", kind: "missed step", what: "the same, if no validator tells that the rest is of the same", from: history, found: test("TestPartGoesOn")},
	{name: "crawling-rescue", kind: "no deadline", what: "a slow sibling that is to go on is waited for though the origin is fast", from: history, found: test("TestSecondSourceCrawls")},
	{name: "crawling-sibling", kind: "no deadline", what: "a slow sibling is waited for though the origin is fast", from: history, found: seed(18, "slow")},
	{name: "first-byte", kind: "no deadline", what: "an origin that sends no header is waited for", from: history, found: seed(7, "hung")},
	{name: "eof-with-bytes", kind: "success taken for an error", what: "the last bytes that come together with io.EOF are an error", from: history, found: seed(1, "error")},
	{name: "unwritable-store", kind: "success taken for an error", what: "a body that cannot be written is cut", from: history, found: seed(20, "cut")},
	{name: "unverified-reads", kind: "skipped check", what: "turned bits are served, and spread", from: history, found: seed(4, "body")},
	{name: "bad-object-stays", kind: "stale entry", what: "an unreadable object breaks every answer until the restart", from: history, found: seed(23, "error")},
	{name: "bad-block-cuts", kind: "missed step", what: "an answer is cut at a bad block", from: history, found: seed(4, "cut")},
	{name: "clock-put-right", kind: "wrong clock", what: "a response stored while the clock was ahead stays fresh", places: 2, from: history, found: seed(20, "age")},
	{name: "wall-clock-ages", kind: "wrong clock", what: "ages go by a clock that jumps", from: history, found: seed(20, "age")},
	{name: "age-of-arrival", kind: "wrong clock", what: "Age leaves out what the request waited for", places: 2, from: history, found: test("TestAgeAfterWaiting")},
	{name: "slow-sender", kind: "no deadline", what: "a client that stops sending is never given up", from: history, found: seed(1, "held")},
	{name: "older-confirms", kind: "skipped check", what: "an older copy of a sibling confirms a newer one", from: history, found: seed(5, "body")},
	{name: "late-private-commit", kind: "skipped check", what: "what nobody could join is stored after a write", from: history, found: seed(13, "stale")},
	{name: "lagging-sibling", kind: "skipped check", what: "a sibling that has not applied a write brings an older copy back", from: history, found: added("TestLaggingSibling")},
	{name: "tombstones", kind: "skipped check", what: "a sibling brings an older copy back after a purge of this peer alone", from: history, found: seed(13, "stale")},
	{name: "write-here-only", kind: "lost update", what: "after a write other peers serve what was before", from: history, found: seed(1, "stale")},
	{name: "late-commit", kind: "skipped check", what: "what was under way when its URL was written to is stored", from: history, found: seed(4, "stale")},
	{name: "slice-edge", kind: "off by one", what: "the first byte of each slice but one is left out", from: chosen, found: test("TestSlicesByRange")},
	{name: "slice-of-version", kind: "skipped check", what: "a large object is put together of slices of two versions", places: 2, from: chosen, found: test("TestSlicesOfVersions")},
	{name: "slice-stays-listed", kind: "stale entry", what: "a slice that left the store stays in the digest", from: chosen, found: test("TestSlicesStale")},
	{name: "digest-leak", kind: "stale entry", what: "what leaves the store stays in the digest", from: history, found: seed(1, "digest")},
	{name: "arriving-pace", kind: "wrong measure", what: "a sibling that passes on what a slow origin sends is not asked any longer", from: history, found: seed(3371, "loads")},

	{name: "part-stored", kind: "skipped check", what: "a part of a page is stored as the page", places: 2, from: attack, found: request(130, `range: status 206`)},
	{name: "error-to-range-stored", kind: "skipped check", what: "what an origin answers to a range is stored for all", from: attack, found: test("TestConformance").of("cmd/peer/internal/proxy")},
	{name: "error-to-slice-stored", kind: "skipped check", what: "what an origin answers to a slice is stored for all who want that", from: attack, found: test("TestErrorToSlice")},
	{name: "complaint-stored", kind: "skipped check", what: "an error that a request provoked is stored", from: attack, found: request(71, `an error to (a range|large fields)`)},
	{name: "expectation-stored", kind: "skipped check", what: "an error to Expect is stored", places: 2, from: attack, found: request(39, `an error to Expect`)},
	{name: "content-stored", kind: "skipped check", what: "an error to a Content- field of a GET is stored", places: 2, from: attack, found: request(709, `content.*: status 415`)},
	{name: "vary-ignored", kind: "lost update", what: "an answer is stored without the fields that it varies by", from: attack, found: request(279, `accept: (body|field Content-Encoding)`)},
	{name: "vary-invalid", kind: "skipped check", what: "an answer with a broken Vary is stored", from: attack, found: request(1096, `an invalid Vary`)},
	{name: "underscores", kind: "field that should not pass", what: "a field with underscores passes, and origins read it as one with hyphens", from: attack, found: request(18, `a field with underscores`)},
	{name: "forwarded-any", kind: "field that should not pass", what: "X-Forwarded- fields of any client pass", from: attack, found: request(422, `key: x-forwarded-(prefix|port|server|path|uri|scheme|ssl|protocol)`)},
	{name: "forwarded-for", kind: "field that should not pass", what: "X-Forwarded-For of any client passes", from: attack, found: request(1259, `key: x-forwarded-for`)},
	{name: "original-url", kind: "field that should not pass", what: "X-Original- fields pass, and origins route by them", from: attack, found: request(1094, `key: x-original`)},
	{name: "method-override", kind: "field that should not pass", what: "a GET with a method override passes", from: attack, found: request(590, `key: x-http-method`)},
	{name: "ambiguous-paths", kind: "skipped check", what: "a rule for a path holds for what servers take for another", places: 2, from: attack, found: request(162, `a private page`)},
	{name: "dot-segments", kind: "missed step", what: "a rule sees a path before its dot segments are removed", places: 2, from: attack, found: request(1172, `a private page`)},
	{name: "queries-alike", kind: "missed step", what: "queries that an origin tells apart have one key", places: 2, from: attack, found: request(743, `queries that the origin tells apart`)},
	{name: "method-no-token", kind: "skipped check", what: "an origin is blamed for a method that is no token", places: 2, from: attack, found: request(245, `a method that is no token`)},

	{name: "given-for-ever", kind: "no deadline", what: "what a sibling gave is believed without end", from: chosen, found: test("TestSiblingsWordRunsOut").of("gossip/httpcache")},
	{name: "window-in-time", kind: "wrong deadline", what: "a client by HTTP/2 that opens its window late is cut", from: chosen, found: seed(3, "cut")},
	{name: "upload-counts", kind: "wrong counter", what: "requests with a body do not give their memory back", from: chosen, found: seed(72, "leak")},
	{name: "room-stays-small", kind: "stale state", what: "a store does not grow again with the room of its disk", from: chosen, found: seed(16, "room")},
	{name: "former-mark", kind: "stale state", what: "invalidations of a member's former life are pushed from that life's mark", from: chosen, found: added("TestRestart")},
	{name: "any-variant", kind: "skipped check", what: "a request in flight is answered by another variant", from: drawn, found: test("TestCollapseVariants")},
	{name: "flag-errors-dropped", kind: "error dropped", what: "a value that a variable has wrong is not refused", from: drawn, found: test("TestUsage")},
	{name: "refused-stays-open", kind: "missed close", what: "a connection beyond the limit is not closed", from: drawn, found: added("TestAccept")},
	{name: "stale-if-error-misfiled", kind: "wrong field", what: "stale-if-error is read as stale-while-revalidate", from: drawn, found: test("TestStaleOnError")},
	{name: "access-log-error-dropped", kind: "error dropped", what: "a peer starts without the access log that it cannot open", from: drawn, found: added("TestStartRefuses")},
	{name: "pool-stays-open", kind: "missed close", what: "connections to other members outlive the node", from: drawn, found: added("TestCloseClosesAll")},
	{name: "page-without-host", kind: "skipped check", what: "a status page is linked that has no host", from: drawn, found: test("TestAdminOfRow")},
	{name: "delta-state-unchecked", kind: "skipped check", what: "a delta with another result than its target's is applied", from: drawn, found: test("TestDeltaOnlyAppliesToItsBase")},
	{name: "follower-uncounted", kind: "lost update", what: "the fetch of those who joined ends with its leader", from: drawn, found: test("TestResume")},
	{name: "still-queued", kind: "stale state", what: "a peer whose digest is fetched stays in the queue", from: drawn, found: test("TestForgedAdvertsChangeNothing")},
	{name: "site-path-prefix", kind: "skipped check", what: "a site for /a has /ab as well", from: drawn, found: test("TestSites")},
	{name: "last-span-lost", kind: "off by one", what: "the last of several spans is not exported", from: drawn, found: test("TestSpans")},
	{name: "pid-cut", kind: "off by one", what: "the process that has the store is named wrongly", from: drawn, found: test("TestOpenRefuses")},
	{name: "first-below-floor", kind: "skipped check", what: "entries are taken that their sender has forgotten", from: drawn, found: test("TestVectors")},
	{name: "star-overrides", kind: "wrong order", what: "a coding that a client refuses is sent because of its *", from: drawn, found: test("TestEncodings")},
	{name: "last-byte-raw", kind: "off by one", what: "an invalid last byte of a URL is not escaped", from: drawn, found: added("TestInvalidBytes")},
	{name: "stretch-of-two", kind: "off by one", what: "a search ends with two keys left", from: drawn, found: test("TestNeverMisses")},
	{name: "entry-too-many", kind: "off by one", what: "a digest for Squid is larger than Squid reads", from: drawn, found: test("TestBuilderRefuses")},
	{name: "not-a-number", kind: "skipped check", what: "NaN is a number between the bounds of a setting", from: drawn, found: test("TestMistakes")},
	{name: "confirmed-undated", kind: "lost update", what: "after a 304 a Squid's digest is fetched whole", from: drawn, found: added("TestTerseConfirmation")},
	{name: "width-in-bytes", kind: "wrong unit", what: "a column with other letters than ASCII is too wide", from: drawn, found: added("TestLetters")},
	{name: "lost-again", kind: "wrong counter", what: "lines of the access log that are lost are reported again and again", from: drawn, found: added("TestLostOnce")},
	{name: "notify-socket-leak", kind: "missed close", what: "each notification of systemd leaves a socket open", from: drawn, found: added("TestNotifyLeavesNothing")},
	{name: "length-overflows", kind: "overflow", what: "a length of 2^63 or more is not refused", from: drawn, found: added("TestTake")},
	{name: "from-the-future", kind: "skipped check", what: "a control request may be dated in the future", from: drawn, found: test("TestAccept")},
	{name: "event-stream-coded", kind: "missed exception", what: "an event stream is compressed, and delayed", from: drawn, found: test("TestCompressibleType")},
	{name: "silent-stays-open", kind: "missed close", what: "a connection that sends nothing is not closed", from: drawn, found: added("TestSilentConnectionsEnd")},
	{name: "never-doubtful", kind: "lost update", what: "a replica that a delta does not fit never asks for a snapshot", from: drawn, found: added("TestDamaged")},
	{name: "probe-never-ends", kind: "stale state", what: "a part that waits between two probes is reported as hung", from: drawn, found: test("TestIdleIsHealthy")},
	{name: "keys-stay", kind: "stale entry", what: "a rate-limited log keeps every key", from: drawn, found: test("TestOnceAMinute")},
	{name: "interval-overflows", kind: "overflow", what: "the planned time between updates is negative", from: drawn, found: test("TestPlanOfFewObjects")},
	{name: "range-too-long", kind: "off by one", what: "the rest of a part is requested with one byte too many", from: drawn, found: test("TestPartGoesOn")},
	{name: "hook-skipped", kind: "lost update", what: "of several hooks that wait, only the last runs", from: drawn, found: added("TestHooksInOrder")},
	{name: "below-tls", kind: "skipped check", what: "an answer bypasses TLS", from: drawn, found: added("TestOfEncrypted")},
	{name: "delete-in-token", kind: "off by one", what: "a token may have a DEL", from: drawn, found: added("TestToken")},
	{name: "host-too-many", kind: "off by one", what: "one host more than the limit is remembered", from: drawn, found: added("TestHintsAreBounded")},
	{name: "any-incarnation", kind: "skipped check", what: "a payload of a member's other life is taken", from: drawn, found: test("TestModel")},
	{name: "newer-protocol", kind: "skipped check", what: "a member that speaks only a newer protocol is accepted", from: drawn, found: test("TestAcceptNamesTheReason")},
	{name: "index-stays", kind: "stale entry", what: "a peer whose digest is refused stays a candidate", from: drawn, found: added("TestUnusableDigests")},
	{name: "dropped-still-counts", kind: "wrong counter", what: "a connection that made room still counts", from: drawn, found: test("TestGate")},
	{name: "limit-exclusive", kind: "off by one", what: "a message as long as the limit is refused", from: drawn, found: added("TestLimitsAreInclusive")},
	{name: "unadvertised-listed", kind: "skipped check", what: "a body that has just begun is advertised", from: drawn, found: added("TestAdvertisedIsListed")},
	{name: "repeats-kept", kind: "stale state", what: "a new version is repeated as seldom as the old one", from: drawn, found: added("TestNewVersionIsRepeatedSoon")},
	{name: "light-fetches", kind: "skipped check", what: "a light peer fetches digests", from: chosen, found: added("TestModel")},
	{name: "advert-to-light", kind: "skipped check", what: "a light peer is sent adverts", from: chosen, found: added("TestModel")},
	{name: "answers-early", kind: "skipped check", what: "a full peer says that it is complete before it has all digests", from: chosen, found: added("TestComplete")},
	{name: "sum-never-equal", kind: "skipped check", what: "the sum of a light peer never equals another's", from: chosen, found: added("TestModel")},
}
