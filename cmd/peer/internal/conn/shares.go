package conn

import "github.com/summarycache/summarycache/gossip/httpcache/budget"

// Shares are how many connections each part of a peer may have at a time, so that no part
// uses up the descriptors of another.
type Shares struct {
	Clients Limits // one address has at most half, so that there is room for a second
	Admin   Limits // likewise
	Gossip  Limits // incoming; likewise, at most 512
	Idle    int    // to origins, kept open for later
}

const (
	adminConns  = 32
	adminMemory = 8 << 20 // bytes for long headers
	mostGossip  = 4096
	mostIdle    = 1024
)

// own returns how many descriptors the peer itself needs: the store has up to 96 segments of two files
// each, and there are the log, listeners and the system's. With few descriptors it may have fewer segments.
func own(descriptors int) int { return min(224, descriptors/2) }

// Share divides the descriptors and the memory of the process. A client's request may need a second
// descriptor, for an origin, a sibling or a file. clients is the limit of client connections;
// 0 = as many as there are descriptors for.
func Share(clients int, b *budget.Budget) Shares {
	s := share(clients, descriptors())
	s.Clients.Connections = b.Open("connections", b.Total()/2, b.Total()/2) // and no more: others need the rest
	s.Clients.Requests = b.Open("requests", b.Total()/16, 0)
	s.Admin.Requests = b.Open("admin", 0, adminMemory)
	return s
}

func share(clients, descriptors int) Shares {
	s := Shares{Admin: Limits{Conns: adminConns, PerHost: adminConns / 2}}
	s.Gossip.Conns = max(16, min(mostGossip, descriptors/8))
	s.Gossip.PerHost = min(512, s.Gossip.Conns/2)
	room := max(16, (descriptors-s.Gossip.Conns-adminConns-own(descriptors))/2)
	if clients == 0 {
		clients = room
	}
	clients = min(clients, room)
	s.Clients = Limits{Conns: clients, PerHost: max(1, clients/2)}
	s.Idle = min(mostIdle, clients/4)
	return s
}
