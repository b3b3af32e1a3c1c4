// Package peering has what the caches of this module write into requests to each other, and read there, beside what
// package sibling promises (gossip/PROTOCOL.md, sections 12 to 14).
package peering

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Asker returns the name of the cache that sent a request, from the last member of Via; "" = a
// client sent it. Anybody can claim a name.
func Asker(h http.Header) string {
	if names := rfc9111.Via(h); len(names) > 0 {
		return names[len(names)-1]
	}
	return ""
}

// MaxWait is how long a lookup request may wait for a fetch in flight.
const MaxWait = 10 * time.Second

// PreferredWait returns how long the sender of a lookup request is ready to wait for a fetch in
// flight (RFC 7240 section 4.3), at most 10 s; 0 = not at all.
func PreferredWait(h http.Header) time.Duration {
	for m := range rfc9111.Members(h["Prefer"]) {
		if s, ok := strings.CutPrefix(strings.ToLower(m), "wait="); ok {
			if n, err := strconv.ParseUint(s, 10, 16); err == nil {
				return min(time.Duration(n)*time.Second, MaxWait)
			}
		}
	}
	return 0
}

// selecting are the request fields that siblings get even if no response is known to vary by them.
var selecting = []string{"Accept", "Accept-Encoding", "Accept-Language", "Accept-Charset", "User-Agent", "Origin", rfc9111.KeyField}

// LookupHeader returns the header of a lookup request for the object of r, from the cache of that
// name. It has the fields of r that select a variant, further fields by their canonical names,
// and how fresh the answer must be. Siblings do not get the rest of r, such as cookies. cc
// has the directives of r.
func LookupHeader(r *http.Request, cc *rfc9111.Directives, name string, fields ...string) http.Header {
	h := http.Header{}
	for _, names := range [...][]string{selecting, fields} {
		for _, field := range names {
			if lines := r.Header[field]; lines != nil {
				h[field] = lines
			}
		}
	}
	wants := "only-if-cached"
	if cc.MaxAge != rfc9111.Unset {
		wants += ", max-age=" + strconv.Itoa(int(cc.MaxAge.Seconds()))
	}
	if cc.MinFresh != rfc9111.Unset {
		wants += ", min-fresh=" + strconv.Itoa(int(cc.MinFresh.Seconds()))
	}
	h["Cache-Control"] = []string{wants}
	h["Via"] = r.Header["Via"]
	rfc9111.AddVia(h, r.ProtoMajor, r.ProtoMinor, name)
	return h
}

// invalidatedField names, in a lookup request, the invalidations that match its object
// (PROTOCOL.md, section 12.3).
const invalidatedField = "Summarycache-Invalidated"

// NameInvalidations writes the invalidations that match an identity (Node.Concerning of package gossip)
// into the header of a lookup request for its object. It returns false if no sibling may be asked.
// c nil = there are no invalidations.
func NameInvalidations(h http.Header, c interface {
	Concerning(identity string) (ids []invalidation.ID, ok bool)
}, identity string) bool {
	if c == nil {
		return true
	}
	ids, ok := c.Concerning(identity)
	if len(ids) > 0 {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = id.String()
		}
		h[invalidatedField] = []string{strings.Join(names, ", ")}
	}
	return ok
}

// UpToDate reports whether this cache has applied all invalidations that the header of a lookup
// request names. If not, the request must be answered as a miss, since the object here may
// be an invalidated one. c nil = none was applied.
func UpToDate(h http.Header, c interface{ Applied(...invalidation.ID) bool }) bool {
	if h[invalidatedField] == nil {
		return true
	}
	var ids []invalidation.ID
	for m := range rfc9111.Members(h[invalidatedField]) {
		id, ok := invalidation.ParseID(m)
		if !ok || len(ids) >= invalidation.MaxConcerning {
			return false
		}
		ids = append(ids, id)
	}
	return len(ids) == 0 || c != nil && c.Applied(ids...)
}

// HasBody reports whether a request may have a body. The Body of a server's request is never nil,
// and handlers may have wrapped it.
func HasBody(r *http.Request) bool {
	return r.ContentLength != 0 || r.RequestURI == "" && r.Body != nil && r.Body != http.NoBody
}

type peerKey struct{}

// WithPeer returns a context for requests to a peer, by its name in the cluster. A Config.HTTP
// that checks names needs it.
func WithPeer(ctx context.Context, peer string) context.Context {
	return context.WithValue(ctx, peerKey{}, peer)
}

// PeerOf returns the peer that a request is for or that answered it; "" = the request is not for
// a peer, or the origin answered.
func PeerOf(ctx context.Context) string {
	peer, _ := ctx.Value(peerKey{}).(string)
	return peer
}
