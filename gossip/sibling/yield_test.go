package sibling

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestYield: what a peer learns from one fetch, about which an owner named nobody or was not asked.
func TestYield(t *testing.T) {
	const before = 0.25
	for name, tt := range map[string]struct {
		asked      bool          // an owner was
		more       int           // fetches after it about which owners are asked, and which nobody gets here
		after      time.Duration // until the rest
		noted      bool          // it is noted as wanted by nobody else by then
		served     bool          // another peer gets the object here
		sent       bool          // an owner sent it
		advertised bool          // later another peer advertises the object
		want       float64       // notes that others want the object, less notes that they do not
	}{
		"undecided":                                {asked: true, want: 0},
		"nobody came":                              {asked: true, after: openFor, want: -1},
		"somebody was sent":                        {asked: true, served: true, sent: true, want: 1},
		"somebody was sent late":                   {asked: true, noted: true, served: true, sent: true, want: 1},
		"somebody found it in the digest":          {asked: true, served: true, after: openFor, want: 0},
		"many follow":                              {asked: true, more: maxOpen, want: -1},
		"somebody was sent after many":             {asked: true, more: maxOpen, served: true, sent: true, want: 1},
		"not asked":                                {after: openFor, want: 0},
		"not asked, nobody has it":                 {after: loneFor, want: -1},
		"not asked, somebody fetched it":           {after: loneFor, advertised: true, want: 1},
		"not asked, somebody fetched it from here": {served: true, after: loneFor, advertised: true, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				advertised := func(string) bool { return tt.advertised }
				y := yield{share: before}
				if tt.asked {
					y.asked("x", 0, false, time.Now(), advertised)
				} else {
					y.fetches("x", time.Now(), advertised)
				}
				for i := range tt.more {
					y.asked(fmt.Sprint(i), 0, false, time.Now(), advertised)
				}
				if tt.noted {
					time.Sleep(openFor)
				}
				y.judge(time.Now(), advertised)
				if tt.served {
					y.served("x", tt.sent)
				}
				time.Sleep(tt.after)
				y.judge(time.Now(), advertised)
				up, down := yieldGain*(1-before), yieldGain*before
				want := map[float64]float64{0: before, 1: before + up, -1: before - down}[tt.want]
				if diff := y.share - want; diff > yieldGain*down || diff < -yieldGain*down {
					t.Errorf("the share is %.4f, want %.4f", y.share, want)
				}
			})
		})
	}
}

// While the list of fetches is full, answers of owners are not counted: those that name a peer would
// be, and the others not.
func TestYieldIsNotBiased(t *testing.T) {
	y := yield{share: 0.5}
	now := time.Now()
	for i := range maxLone {
		y.fetches(fmt.Sprint(i), now, nil)
	}
	for range 100 {
		y.asked("x", 0, true, now, nil)
		y.asked("x", 0, false, now, nil)
	}
	if y.share != 0.5 || len(y.alone) != maxLone {
		t.Errorf("the share is %.2f, want 0.50; %d fetches", y.share, len(y.alone))
	}
}
