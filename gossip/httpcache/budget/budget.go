// Package budget divides the memory of the process among its parts.
//
// Each part has a named [Account] with a reserve, which is its own, and takes what it needs beyond
// that from what is left of the [Budget]. Where that runs short, Take refuses, and the part refuses
// whatever was to cost that memory: the newest request, connection or digest. What was taken before
// stays. So no part, and nobody who makes it grow, can take the reserve of another.
//
// Start from [Machine], which finds the memory that the process may use, and [New].
//
// Accounts count what parts hold. Garbage, the program itself and what is too small to count take
// memory as well: a process needs about twice what its accounts hold. [New] allows for that.
package budget

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// A Budget is the memory that the accounts of a process may hold together. It is safe for concurrent
// use.
type Budget struct {
	limit  int64        // bytes, see New
	total  int64        // bytes of all accounts
	open   atomic.Int64 // bytes that are in no reserve
	common atomic.Int64 // bytes of them that are taken

	mu       sync.Mutex
	accounts []*Account
}

// The accounts may hold five eighths of the process's memory, less what the program takes itself;
// in a process with little memory at least a quarter.
const (
	itself = 8 << 20
	least  = 4
)

// New returns the budget of a process that may take limit bytes of memory.
func New(limit int64) *Budget {
	b := &Budget{limit: limit, total: max(limit/8*5-itself, limit/least)}
	b.open.Store(b.total)
	return b
}

// Limit returns the memory of the process in bytes, as New got it.
func (b *Budget) Limit() int64 { return b.limit }

// Total returns the bytes that all accounts may hold together.
func (b *Budget) Total() int64 { return b.total }

// Held returns the bytes that all accounts hold.
func (b *Budget) Held() (bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		bytes += a.held.Load()
	}
	return bytes
}

// Open returns a new account. reserve is the part of the budget that is its own, in bytes; most bounds
// what it may hold, 0 = the budget only. All reserves together may not exceed the budget: what is
// asked for beyond that is not reserved.
func (b *Budget) Open(name string, reserve, most int64) *Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	reserve = max(0, min(reserve, b.open.Load()))
	b.open.Add(-reserve)
	a := &Account{name: name, budget: b, reserve: reserve, most: cmp.Or(most, b.total)}
	b.accounts = append(b.accounts, a)
	return a
}

// A Usage says what an account holds.
type Usage struct {
	Name    string `json:"name"`
	Held    int64  `json:"held"`    // bytes
	Peak    int64  `json:"peak"`    // the most that it has held, bytes
	Reserve int64  `json:"reserve"` // bytes that are its own
	Refused int64  `json:"refused"` // how often it was refused more
}

// Usage returns what each account holds, by name.
func (b *Budget) Usage() (list []Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		list = append(list, Usage{a.name, a.held.Load(), a.peak.Load(), a.reserve, a.refused.Load()})
	}
	slices.SortFunc(list, func(x, y Usage) int { return cmp.Compare(x.Name, y.Name) })
	return list
}

// An Account counts the memory that one part of the process holds. It is safe for concurrent use. The
// nil Account grants everything and counts nothing.
type Account struct {
	name          string
	budget        *Budget
	reserve, most int64
	held, peak    atomic.Int64
	refused       atomic.Int64
	yield         atomic.Pointer[func(bytes int64)]
}

// OnShortage sets a function that gives back some of what the part could do without: it is called with
// the bytes that another account lacks, by whoever takes them, and must not take anything itself.
func (a *Account) OnShortage(yield func(bytes int64)) {
	if a != nil {
		a.yield.Store(&yield)
	}
}

// Take adds n bytes to what the part holds, if there is room, and reports whether there was. Where
// there is none, it asks others to yield some first.
func (a *Account) Take(n int64) bool {
	switch {
	case a == nil || a.take(n):
		return true
	case a.held.Load()+n <= a.most && a.ask(n) && a.take(n):
		return true
	}
	a.refused.Add(1)
	return false
}

// ask asks the other accounts to yield n bytes, and reports whether any of them can.
func (a *Account) ask(n int64) (any bool) {
	a.budget.mu.Lock()
	others := a.budget.accounts // only ever appended to
	a.budget.mu.Unlock()
	for _, other := range others {
		if yield := other.yield.Load(); other != a && yield != nil && other.held.Load() > other.reserve {
			(*yield)(n)
			any = true
		}
	}
	return any
}

// take is Take from what there is.
func (a *Account) take(n int64) bool {
	held := a.add(n)
	if over := a.beyond(held) - a.beyond(held-n); held <= a.most && (over <= 0 || a.budget.common.Load() <= a.budget.open.Load()) {
		a.raise(held)
		return true
	}
	a.Give(n)
	return false
}

// Must adds n bytes, also where there is no room: they are held already.
func (a *Account) Must(n int64) {
	if a != nil {
		a.raise(a.add(n))
	}
}

func (a *Account) add(n int64) (held int64) {
	held = a.held.Add(n)
	a.budget.common.Add(a.beyond(held) - a.beyond(held-n))
	return held
}

// raise notes that the part holds so much.
func (a *Account) raise(held int64) {
	// each round finds that another has raised it
	for peak := a.peak.Load(); held > peak && !a.peak.CompareAndSwap(peak, held); {
		peak = a.peak.Load()
	}
}

// Give subtracts n bytes that were taken.
func (a *Account) Give(n int64) {
	if a == nil {
		return
	}
	held := a.held.Add(-n)
	a.budget.common.Add(a.beyond(held) - a.beyond(held+n))
}

// Room returns how many bytes Take would grant at this moment, if nobody yields any.
func (a *Account) Room() int64 {
	if a == nil {
		return 1<<63 - 1
	}
	held := a.held.Load()
	free := max(0, a.budget.open.Load()-a.budget.common.Load()) + max(0, a.reserve-held)
	return max(0, min(free, a.most-held))
}

// Held returns the bytes that the part holds.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	return a.held.Load()
}

// beyond returns how much of what is held is not reserved.
func (a *Account) beyond(held int64) int64 { return max(0, held-a.reserve) }
