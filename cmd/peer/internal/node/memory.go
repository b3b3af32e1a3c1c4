package node

import (
	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// memory returns what the accounts of the budget hold.
func (n *Node) memory() admin.Memory {
	return admin.Memory{Limit: n.budget.Limit(), Budget: n.budget.Total(), Accounts: n.budget.Usage()}
}

// shortageReporter returns a function that logs which accounts were refused memory since its last call.
func (n *Node) shortageReporter() func() {
	before := make(map[string]int64)
	return func() {
		for _, u := range n.budget.Usage() {
			if more := u.Refused - before[u.Name]; more > 0 {
				before[u.Name] = u.Refused
				n.log.Warn("memory runs short: something was refused, or made something give way; see --memory-limit",
					"account", u.Name, "times", more, "held", u.Held, "budget", n.budget.Total(),
					"held_by_all", n.budget.Held())
			}
		}
	}
}
