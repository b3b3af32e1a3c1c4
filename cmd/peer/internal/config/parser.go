package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// A Parser reads the values of flags that are no [Settings] and collects every
// mistake. Bounds are inclusive. The zero Parser is ready.
type Parser struct{ errs []error }

// Err joins the mistakes found so far; nil means none.
func (p *Parser) Err() error { return errors.Join(p.errs...) }

func (p *Parser) fail(flag, value, reason string) {
	p.errs = append(p.errs, &Mistake{flag, value, reason})
}

// Int reads a whole number.
func (p *Parser) Int(flag, value string, least, most int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		p.fail(flag, value, fmt.Sprintf("is no whole number between %d and %d", least, most))
	}
	return n
}

// Uint reads a whole number of 64 bits.
func (p *Parser) Uint(flag, value string) uint64 {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		p.fail(flag, value, fmt.Sprintf("is no whole number between 0 and %d", uint64(math.MaxUint64)))
	}
	return n
}

// Float reads a number.
func (p *Parser) Float(flag, value string, least, most float64) float64 {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= least && f <= most) {
		p.fail(flag, value, fmt.Sprintf("is no number between %v and %v", least, most))
	}
	return f
}

// Duration reads a length of time.
func (p *Parser) Duration(flag, value string, most time.Duration) time.Duration {
	d, err := parseDuration(value)
	switch {
	case err != nil:
		p.fail(flag, value, err.Error())
	case d > most:
		p.fail(flag, value, fmt.Sprintf("is more than %v", most))
	}
	return d
}

// Size reads a number of bytes; "" is 0.
func (p *Parser) Size(flag, value string) int64 {
	if value == "" {
		return 0
	}
	n, err := ParseSize(value)
	if err != nil {
		p.fail(flag, value, err.Error())
	}
	return n
}
