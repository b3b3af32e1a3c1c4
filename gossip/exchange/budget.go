package exchange

import "time"

// A budget is a rate in bytes a second, of which a few seconds' worth may be used at once.
// The size of a body is known only afterwards, so the level may fall below zero. Then
// nothing is allowed until it has risen again.
type budget struct {
	rate  float64 // bytes a second; 0 means no bound
	level float64
	at    time.Time
}

const budgetBurst = 4 // seconds

func newBudget(rate int, now time.Time) budget {
	return budget{rate: float64(rate), level: float64(rate) * budgetBurst, at: now}
}

// wait returns how long until something is allowed; 0 if it is now.
func (b *budget) wait(now time.Time) time.Duration {
	if b.rate <= 0 {
		return 0
	}
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.level+d.Seconds()*b.rate, b.rate*budgetBurst)
		b.at = now
	}
	if b.level > 0 {
		return 0
	}
	return time.Duration(-b.level/b.rate*float64(time.Second)) + time.Millisecond
}

func (b *budget) take(bytes int) { b.level -= float64(bytes) }
