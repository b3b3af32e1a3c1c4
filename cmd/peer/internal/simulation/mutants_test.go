package simulation

const (
	digestTable = "digest/table.go"
	cacheDir    = "cmd/peer/internal/cache/"
	storePkg    = "cmd/peer/internal/store/"
)

// mutations are faults that were found by hand, in long runs and by attacks, before
// there was a simulation, and some that it found itself. Each is put back into today's code.
var mutations = []mutation{
	{name: "filter-hang", what: "a look-up in a digest that goes round for ever", only: "^$", edits: []edit{ // a process that hangs
		{digestTable, "	for range t.near() {\n		l = t.at(at)\n		for match", "	for t.len() > 0 {\n		l = t.at(at)\n		for match"},
		{digestTable, "		t.at(home).head += by\n", "		t.at(home).head |= lineSpill\n"}, // for good, as it was then
	}},
	{name: "stall-for-ever", what: "an origin that stalls once takes its URL away from everyone", edits: []edit{
		{cacheDir + "resume.go", "		case idle >= limit:\n			b.from.cancel(errBetweenBytes)\n", ""},
		{cacheDir + "resume.go", "		case idle >= b.may.left && limit < forever:\n			b.overtake()\n		}\n		for", "		}\n		for"},
		{cacheDir + "resume.go", "			b.overtake()\n		}\n		if b.changed", "		}\n		if b.changed"},
	}},
	{name: "no-takeover", what: "those who join a stalled body wait for its deadline", edits: []edit{
		{cacheDir + "resume.go", "		case idle >= b.may.left && limit < forever:\n			b.overtake()\n		}\n		for", "		}\n		for"},
		{cacheDir + "resume.go", "			b.overtake()\n		}\n		if b.changed", "		}\n		if b.changed"},
	}},
	{name: "no-resume", what: "an answer is cut where its source breaks off", edits: []edit{
		{cacheDir + "resume.go", "	return (b.f.delivered() || !b.resuming) && ", "	return false && "},
	}},
	{name: "copy-unused", what: "an answer is cut though the store has its rest", edits: []edit{
		{cacheDir + "attempt.go", "	if a := t.stored(); a != nil {", "	if a := t.stored(); false && a != nil {"},
	}},
	{name: "copy-mixed", what: "a body goes on with one that says it is another version", edits: []edit{
		{cacheDir + "attempt.go", "	case a.status != whole.Status, !whole.same(a.representation()):", "	case a.status != whole.Status:"},
	}},
	{name: "resume-blindly", what: "a body goes on with that of another version", edits: []edit{
		{cacheDir + "attempt.go", "received.Check(from, start-b.first, math.MaxInt64)", "received.Check(from, start-b.first, 0*math.MaxInt64)"},
	}},
	{name: "part-cut", what: "a part of a large object is cut where its source breaks off", edits: []edit{
		{cacheDir + "resume.go", "size >= 0 && (a.length < 0 ||", "size < -1 && (a.length < 0 ||"},
	}},
	{name: "part-forgotten", what: "the same, if no validator tells that the rest is of the same", edits: []edit{
		{cacheDir + "resume.go", "		b.passed = new(store.Received)\n", ""},
	}},
	{name: "crawling-rescue", what: "a slow sibling that is to go on is waited for though the origin is fast", edits: []edit{
		{cacheDir + "attempt.go", "t.take(a, a.allowance())", "t.take(a, patient)"},
	}},
	{name: "crawling-sibling", what: "a slow sibling is waited for though the origin is fast", edits: []edit{
		{cacheDir + "floor.go", "allow(siblingStall, siblingFloor)", "allow(stallTime, sharedFloor)"},
	}},
	{name: "first-byte", what: "an origin that sends no header is waited for", edits: []edit{
		{"cmd/peer/internal/proxy/proxy.go", "ResponseHeaderTimeout:  c.FirstByteTimeout,", "ResponseHeaderTimeout:  0,"},
	}},
	{name: "eof-with-bytes", what: "the last bytes that come together with io.EOF are an error", edits: []edit{
		{cacheDir + "resume.go", "whole := err == io.EOF &&", "whole := err == io.EOF && n == 0 &&"},
	}},
	{name: "unwritable-store", what: "a body that cannot be written is cut", edits: []edit{
		{storePkg + "writer.go", "		w.giveUp(err)\n		return", "		w.giveUp(err)\n		w.End(err)\n		return"},
	}},
	{name: "unverified-reads", what: "turned bits are served, and spread", edits: []edit{
		{storePkg + "blocks.go", "if xxhash.Sum64(b.buf[:n]) != b.sums[i] {", "if false && xxhash.Sum64(b.buf[:n]) != b.sums[i] {"},
	}},
	{name: "bad-object-stays", what: "an unreadable object breaks every answer until the restart", edits: []edit{
		{storePkg + "blocks.go", "	if s.removeIf(o.key, same) {", "	if false && s.removeIf(o.key, same) {"},
	}},
	{name: "bad-block-cuts", what: "an answer is cut at a bad block", edits: []edit{
		{cacheDir + "finish.go", "	if r.cc.OnlyIfCached {\n		return\n	}\n	behind :=", "	if true || r.cc.OnlyIfCached {\n		return\n	}\n	behind :="},
	}},
	{name: "clock-put-right", what: "a response stored while the clock was ahead stays fresh", edits: []edit{
		{cacheDir + "clock.go", "	return d, d >= 0", "	return max(0, d), true"},
		{cacheDir + "clock.go", "	if m.clock == then.clock && m.clock != 0 {", "	if false && m.clock == then.clock {"},
	}},
	{name: "wall-clock-ages", what: "ages go by a clock that jumps", edits: []edit{
		{cacheDir + "clock.go", "	if m.clock == then.clock && m.clock != 0 {", "	if false && m.clock == then.clock {"},
	}},
	{name: "age-of-arrival", what: "Age leaves out what the request waited for", only: "age", edits: []edit{
		{cacheDir + "direct.go", "e.age(c.now())", "e.age(r.now)"},
		{cacheDir + "serve.go", "next, r.now = *more, c.now()", "next = *more"},
	}},
	{name: "slow-sender", what: "a client that stops sending is never given up", edits: []edit{
		{"cmd/peer/internal/node/node.go", "Handler: withBodyDeadline(h, n.cfg.ClientBodyTimeout)", "Handler: withBodyDeadline(h, 1000*n.cfg.ClientBodyTimeout)"},
	}},
	{name: "older-confirms", what: "an older copy of a sibling confirms a newer one", edits: []edit{
		{"gossip/rfc9111/validate.go", "modified.Equal(r.LastModified)\n}", "true\n}"},
	}},
	{name: "late-private-commit", what: "what nobody could join is stored after a write", edits: []edit{
		{cacheDir + "coalesce.go", "|| c.invalidated.has(f.r.url, resp.Header, began) || c.purged.has(f.r.url, resp.Header, began)", ""},
		{cacheDir + "coalesce.go", "	began := f.began.ago(-1)\n", ""},
	}},
	{name: "lagging-sibling", what: "a sibling that has not applied a write brings an older copy back", edits: []edit{
		{cacheDir + "serve.go", "r.cc.OnlyIfCached && !sibling.UpToDate(", "false && r.cc.OnlyIfCached && !sibling.UpToDate("},
	}},
	{name: "tombstones", what: "a sibling brings an older copy back after a purge of this peer alone", edits: []edit{
		{cacheDir + "tombstones.go", "t.get(url); ok && generated.steady <= at {", "t.get(url); false && ok && generated.steady <= at {"},
	}},
	{name: "write-here-only", what: "after a write other peers serve what was before", edits: []edit{
		{cacheDir + "invalidate.go", "	if c.cfg.Cluster == nil || len(urls) == 0 {", "	if true {"},
	}},
	{name: "late-commit", what: "what was under way when its URL was written to is stored", edits: []edit{
		{cacheDir + "fetch.go", "	if c.outdated(f, res.entry.Response) {\n		w.Abort()", "	if false {\n		w.Abort()"},
		{cacheDir + "fetch.go", "	if c.outdated(f, res.entry.Response) { // meanwhile", "	if false { // by now"},
	}},
	{name: "digest-leak", what: "what leaves the store stays in the digest", edits: []edit{
		{storePkg + "object.go", "	s.exp.remove(o)\n	s.unlist(o)", "	s.exp.remove(o)"},
	}},
}
