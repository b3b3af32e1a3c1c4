package simulation

const (
	digestTable = "digest/table.go"
	cacheDir    = "cmd/peer/internal/cache/"
	storePkg    = "cmd/peer/internal/store/"
)

// mutations are the faults that were found by hand, in long runs and by attacks, before
// there was a simulation, and some of those that it found itself. Each is put back into the
// code as that is now.
var mutations = []mutation{
	{"filter-hang", "a look-up in a digest that goes round for ever", []edit{
		{digestTable, "	for range t.near() {\n		l = t.at(at)\n		for match", "	for t.len() > 0 {\n		l = t.at(at)\n		for match"},
	}},
	{"stall-for-ever", "an origin that stalls once takes its URL away from everyone", []edit{
		{cacheDir + "resume.go", "		case idle >= limit:\n			b.from.cancel(errBetweenBytes)\n		case idle >= b.patience:\n			b.overtake(false)\n", ""},
		{cacheDir + "resume.go", "			b.overtake(false)\n		}\n		if b.changed", "		}\n		if b.changed"},
	}},
	{"no-takeover", "those who join a stalled body wait for its deadline", []edit{
		{cacheDir + "resume.go", "		case idle >= b.patience:\n			b.overtake(false)\n", ""},
		{cacheDir + "resume.go", "			b.overtake(false)\n		}\n		if b.changed", "		}\n		if b.changed"},
	}},
	{"no-resume", "an answer is cut where its source breaks off", []edit{
		{cacheDir + "resume.go", "	return b.f.delivered() && ", "	return false && b.f.delivered() && "},
	}},
	{"resume-blindly", "a body goes on with that of another version", []edit{
		{cacheDir + "attempt.go", "			if differs != nil {", "			if false {"},
	}},
	{"compare-once", "a second source is compared from where the first one differed", []edit{
		{cacheDir + "attempt.go", "			received.Begin()\n", ""},
	}},
	{"crawling-sibling", "a slow sibling is waited for though the origin is fast", []edit{
		{cacheDir + "resume.go", "		case b.crawls(now):", "		case false && b.crawls(now):"},
	}},
	{"first-byte", "an origin that sends no header is waited for", []edit{
		{cacheDir + "sources.go", "time.AfterFunc(c.cfg.FirstByte,", "time.AfterFunc(1000*c.cfg.FirstByte,"},
	}},
	{"eof-with-bytes", "the last bytes that come together with io.EOF are an error", []edit{
		{cacheDir + "resume.go", "whole := err == io.EOF &&", "whole := err == io.EOF && n == 0 &&"},
	}},
	{"unwritable-store", "a body that cannot be written is cut", []edit{
		{storePkg + "writer.go", "		w.giveUp(err)\n		return", "		w.giveUp(err)\n		w.End(err)\n		return"},
	}},
	{"unverified-reads", "turned bits are served, and spread", []edit{
		{storePkg + "blocks.go", "if xxhash.Sum64(b.buf[:n]) != b.sums[i] {", "if false && xxhash.Sum64(b.buf[:n]) != b.sums[i] {"},
	}},
	{"bad-object-stays", "an unreadable object breaks every answer until the restart", []edit{
		{storePkg + "blocks.go", "	if s.dropFile(o) {", "	if false && s.dropFile(o) {"},
	}},
	{"bad-block-cuts", "an answer is cut at a bad block", []edit{
		{cacheDir + "finish.go", "		if r.cc.OnlyIfCached || ", "		if true || r.cc.OnlyIfCached || "},
	}},
	{"clock-put-right", "a response stored while the clock was ahead stays fresh", []edit{
		{cacheDir + "clock.go", "	return d, d >= 0", "	return max(0, d), true"},
		{cacheDir + "clock.go", "	if m.clock == then.clock && m.clock != 0 {", "	if false && m.clock == then.clock {"},
	}},
	{"wall-clock-ages", "ages go by a clock that jumps", []edit{
		{cacheDir + "clock.go", "	if m.clock == then.clock && m.clock != 0 {", "	if false && m.clock == then.clock {"},
	}},
	{"slow-reader", "a client that stops reading is never given up", []edit{
		{"cmd/peer/internal/conn/patience.go", "	if p.limit <= 0 || p.off.Load() {\n		return write(0)", "	if true {\n		return write(0)"},
	}},
	{"slow-sender", "a client that stops sending is never given up", []edit{
		{"cmd/peer/internal/node/node.go", "Handler: withBodyDeadline(h, n.cfg.ClientBodyTimeout)", "Handler: withBodyDeadline(h, 1000*n.cfg.ClientBodyTimeout)"},
	}},
	{"older-confirms", "an older copy of a sibling confirms a newer one", []edit{
		{"gossip/rfc9111/validate.go", "modified.Equal(r.LastModified)\n}", "true\n}"},
	}},
	{"late-private-commit", "what nobody could join is stored after a write", []edit{
		{cacheDir + "coalesce.go", "f.invalidated.Load() || c.tombstones", "f.invalidated.Load() || false && c.tombstones"},
	}},
	{"tombstones", "a sibling brings an older copy back after a write", []edit{
		{cacheDir + "tombstones.go", "ok && generated.steady <= at {", "false && ok && generated.steady <= at {"},
	}},
	{"late-commit", "what was under way when its URL was written to is stored", []edit{
		{cacheDir + "fetch.go", "	if c.outdated(f) {\n		w.Abort()", "	if false {\n		w.Abort()"},
	}},
	{"digest-leak", "what leaves the store stays in the digest", []edit{
		{storePkg + "object.go", "	s.exp.remove(o)\n	s.unlist(o)", "	s.exp.remove(o)"},
	}},
}
