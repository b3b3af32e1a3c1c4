// Package canonical gives a request the one form in which everything sees it: the rules, the key, the
// log, siblings and the origin. So none of them can take it for another request than the others do.
//
// [URL] brings the target into the normal form of RFC 3986, and no further, since an origin may
// distinguish what looks alike. [Ambiguous] finds paths that some servers take for others all the
// same: they keep their spelling, and rules treat them with suspicion. [Fields] removes the fields by
// which a client could tell the origin something that is not in the key.
//
// All functions are pure. SITES.md has the form as tables, which a test reads.
package canonical
