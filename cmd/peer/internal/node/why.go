package node

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// pastShown is how many misses an explanation has.
const pastShown = 3

// Why explains what the peer would do with a request; see [admin.Source].
func (n *Node) Why(in admin.WhyRequest) (admin.Explanation, error) {
	method := cmp.Or(in.Method, http.MethodGet)
	e, decided, err := n.proxy.Explain(method, in.URL, in.Header)
	if err != nil {
		return admin.Explanation{}, err
	}
	out := admin.Explanation{Peer: n.config().Name, Method: method, Explanation: e, Rules: decided, Matches: []admin.Match{}, Others: []admin.Holder{}, Past: n.past.Latest(n.config().Name, admin.PastRequest{Last: pastShown, Exact: e.URL, Queries: true})}
	asked := n.matches(e.Identities, in.Header, &out)
	out.Text = sentence(e, asked)
	if strings.HasPrefix(in.URL, "/") && len(n.config().TrustedProxies) > 0 && len(e.Stored) == 0 {
		out.Text += " For requests through a trusted proxy give the client's URL: a path stands for the URL at " +
			"--origin."
	}
	return out, nil
}

// matches looks up every identity in every digest. It returns the names of the
// peers to which requests would be sent, in that order.
func (n *Node) matches(identities []string, header http.Header, out *admin.Explanation) (asked []string) {
	q := sibling.LookupRequest{Header: header, Identities: identities}
	steps := n.proxy.Candidates(q)
	for _, s := range steps {
		asked = append(asked, s.Peer)
	}
	for _, m := range n.gossip.Members() {
		f, ok := n.gossip.Inside().Digest(m.Name)
		if !ok {
			continue
		}
		known := n.member(m)
		for _, identity := range identities {
			match := admin.Match{
				Peer: m.Name, State: known.State, Identity: identity, Says: f.MayContain(digest.KeyOfString(f.Geometry().Seed, identity)),
				FalsePositiveRate: f.FalsePositiveRate(), Age: known.Age, Record: known.Record,
			}
			out.Matches = append(out.Matches, n.expected(match, steps))
		}
	}
	n.squidMatches(&q, steps, out)
	return asked
}

// expected adds to a match its turn, and the expected cost and success of a request.
func (n *Node) expected(m admin.Match, steps []sibling.Ranked) admin.Match {
	for i, s := range steps {
		if s.Peer == m.Peer && (s.Identity == m.Identity || s.Identity == "") {
			m.Turn, m.Odds, m.Cost = i+1, s.Odds, s.Cost.Seconds()
		}
	}
	return m
}

// sentence describes a verdict in a sentence.
func sentence(e engine.Explanation, asked []string) string {
	from := "the origin"
	if len(asked) > 0 {
		from = strings.Join(asked, ", then ") + ", then the origin"
	}
	why := admin.Because(e.Reason)
	switch e.Verdict {
	case engine.WouldHit:
		return "A hit: the stored response is fresh."
	case engine.WouldHitStale:
		return "A hit: the stored response is stale, and may be served while it is validated."
	case engine.WouldRecode:
		return "A hit: made of the stored response without a content coding."
	case engine.WouldValidate:
		return "Validated first: " + why + ". Asked: " + from + "."
	case engine.WouldPass:
		return "Passed to the origin: " + why + "."
	case engine.WouldRefuse:
		return "Refused with 504: the request is only-if-cached, and " + why + "."
	}
	if len(asked) == 0 && len(e.Identities) > 0 {
		return "A miss: " + why + ", and no digest of a peer that can be asked has it. Asked: the origin."
	}
	if len(e.Identities) == 0 {
		return "A miss: " + why + ", and siblings are not asked for such requests. Asked: the origin."
	}
	if len(asked) > 1 {
		from += "; the cheapest first, by round trip over odds"
	}
	return "A miss: " + why + ". Asked: " + from + "."
}

// Digest returns a digest's encoding; see [admin.Source].
func (n *Node) Digest(peer string) ([]byte, error) {
	if peer == "" || peer == n.config().Name {
		return n.holdings.Keys().Filter().Current().AppendTo(nil), nil
	}
	f, ok := n.gossip.Inside().Digest(peer)
	if !ok {
		return nil, admin.ErrNoDigest
	}
	return f.AppendTo(nil), nil
}
