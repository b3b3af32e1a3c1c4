package node

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip"
)

// A roster decides whether a request comes from the member that it names. It is safe for
// concurrent use.
type roster struct {
	members func() []gossip.Member
	secure  bool // siblings have certificates
	log     *slog.Logger

	mu    sync.Mutex
	read  time.Time           // when members was called
	alive map[string]bool     // by name, of every known member
	at    map[netip.Addr]bool // addresses of live members
}

const (
	rosterFor     = time.Second            // how long a list of members is used
	rosterAtLeast = 100 * time.Millisecond // the same if the sender seems to be dead or to have another address
)

var (
	errUnknown       = errors.New("no member has that name")
	errDead          = errors.New("the member of that name is not alive")
	errNoCertificate = errors.New("members of this cluster must use certificates")
	errOtherName     = errors.New("the certificate is for another name")
	errElsewhere     = errors.New("no member has that address")
)

// admit returns an error if a request names a member of the cluster as its sender and is not
// from that member; see [proxy.Config]. It admits a name that no member has, since other caches
// send requests, too.
func (s *roster) admit(r *http.Request, name string) error {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	addr := from.Addr().Unmap()
	alive, known, here := s.look(name, addr, rosterFor)
	if known && (!alive || !here) {
		alive, known, here = s.look(name, addr, rosterAtLeast)
	}
	var err error
	switch {
	case !known:
		return nil
	case !alive:
		err = errDead
	case s.secure && r.TLS == nil:
		err = errNoCertificate
	case s.secure && r.TLS.PeerCertificates[0].VerifyHostname(name) != nil:
		err = errOtherName
	case !s.secure && !here:
		err = errElsewhere
	}
	if err != nil {
		s.log.Warn("refused a request: it is not from the sibling that it names", "member", name, "from",
			r.RemoteAddr, "err", err)
	}
	return err
}

// member returns an error if a request is not from the member of that name.
func (s *roster) member(r *http.Request, name string) error {
	if _, known, _ := s.look(name, netip.Addr{}, rosterFor); !known {
		return errUnknown
	}
	return s.admit(r, name)
}

// look looks up a name and an address; the roster is read again if it is older than age.
func (s *roster) look(name string, addr netip.Addr, age time.Duration) (alive, known, here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.alive == nil || now.Sub(s.read) >= age {
		s.read = now
		s.alive, s.at = make(map[string]bool), make(map[netip.Addr]bool)
		for _, m := range s.members() {
			s.alive[m.Name] = m.Alive
			if m.Alive {
				s.note(m.Addr)
				s.note(m.Service)
			}
		}
	}
	alive, known = s.alive[name]
	return alive, known, s.at[addr]
}

// note adds the address of a host:port, unless the host is a name.
func (s *roster) note(hostPort string) {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		s.at[addr.Unmap()] = true
	}
}
