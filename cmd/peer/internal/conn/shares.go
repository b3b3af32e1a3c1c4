package conn

// Shares are how many connections each part of a peer may have at a time, so that no part
// uses up the descriptors of another.
type Shares struct {
	Clients Limits // one address has at most half, so that there is room for a second
	Admin   Limits // likewise
	Gossip  Limits // incoming; likewise, at most 512
	Idle    int    // to origins, kept open for later
}

const (
	mostClients = 16 << 10 // unless a number is configured
	adminConns  = 32
	others      = 160 // files of the store, which has some 70 segments of two each, the log, listeners
	mostGossip  = 4096
	mostIdle    = 1024
)

// Share divides the descriptors of the process. A client's request may need a second one, for
// an origin, a sibling or a file. clients is the limit of client connections;
// 0 = as many as there are descriptors for, at most 16,384.
func Share(clients int) Shares { return share(clients, descriptors()) }

func share(clients, descriptors int) Shares {
	s := Shares{Admin: Limits{adminConns, adminConns / 2}}
	s.Gossip.Conns = max(16, min(mostGossip, descriptors/8))
	s.Gossip.PerHost = min(512, s.Gossip.Conns/2)
	room := max(16, (descriptors-s.Gossip.Conns-adminConns-others)/2)
	if clients == 0 {
		clients = min(mostClients, room)
	}
	clients = min(clients, room)
	s.Clients = Limits{clients, max(1, clients/2)}
	s.Idle = min(mostIdle, clients/4)
	return s
}
