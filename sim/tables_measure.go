package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
)

const (
	measuredKeys    = 10_000 // n of every filter that is built
	measuredFilters = 64     // for each of Mitzenmacher's columns, for sizes to within 0.1 %; one for each of the others
	wantedHits      = 1_600  // false positives to count for each kind: a standard deviation of 2.5 %
	fewestHits      = 100    // with fewer expected, f is not counted
)

// A filterKind is the kind of filter in a column of a table.
type filterKind struct {
	mn float64
	k  int
	c  float64
}

// A measurement is the mean over filters of one kind.
type measurement struct {
	bits    float64 // m/n
	sent    measure // z/n: coded bits per key of the filter, or of the delta if c > 0
	f       measure
	counted bool // f was counted; if not, it follows from the share of positions set
	probes  int  // keys looked up
}

// measureCells fills in the values that are measured on real filters.
func measureCells(ctx context.Context, job *Job, printed []printedCell, cells []cell) error {
	var kinds []filterKind
	filters := map[filterKind]int{} // of each kind
	for _, p := range printed {
		kind := filterKind{p.MN, p.K, p.C}
		if _, seen := filters[kind]; seen || p.K == 0 || job.Short && p.Table == "SC" {
			continue
		}
		kinds = append(kinds, kind)
		switch {
		case p.Table == "SC": // which come last
			filters[kind] = 1
		case job.Short:
			filters[kind] = 2
		default:
			filters[kind] = measuredFilters
		}
	}
	probes := tablesProbes
	if job.Trials > 0 {
		probes = job.Trials
	}
	measured := make([]measurement, len(kinds))
	err := job.each(ctx, len(kinds), "filters measured", func(i int) (err error) {
		measured[i], err = kinds[i].measure(job.source(1, uint64(i)), filters[kinds[i]], probes)
		return err
	})
	if err != nil {
		return err
	}
	for i, p := range printed {
		if at := slices.Index(kinds, filterKind{p.MN, p.K, p.C}); at >= 0 {
			cells[i].measure(p, measured[at])
		}
	}
	return nil
}

func (c *cell) measure(p printedCell, m measurement) {
	value := m.f
	switch p.Row {
	case "m/n":
		value = measure{value: m.bits}
	case "k":
		value = measure{value: float64(p.K)}
	case "z/n":
		value = m.sent
	case "z/(cn)":
		value = measure{m.sent.value / p.C, m.sent.half / p.C}
	default:
		if !m.counted {
			c.note(fmt.Sprintf("measured by the share of positions set: too rare to count in %d lookups", m.probes))
		}
	}
	c.measured = &measure{figures(value.value, 5), figures(value.half, 2)}
}

// measure builds filters of the kind, codes them, and looks up absent keys.
func (kind filterKind) measure(rng rand.Source, filters, probes int) (measurement, error) {
	geometry := digest.Geometry{Bits: uint64(math.Round(kind.mn * measuredKeys)), Hashes: kind.k}
	m := measurement{bits: float64(geometry.Bits) / measuredKeys}
	expected := falsePositives(kind.mn, float64(kind.k))
	m.probes = min(probes, int(math.Ceil(wantedHits/expected)))
	m.counted = float64(m.probes)*expected >= fewestHits

	hits := 0
	var sent, rates []float64
	for i := range filters {
		held, keys, filter, err := filled(geometry, rng, measuredKeys)
		if err != nil {
			return m, err
		}
		positions := slices.Collect(filter.Positions())
		if kind.c > 0 {
			replaceKeys(held, rng, keys[:int(math.Round(kind.c*measuredKeys))])
			var d *digest.Delta
			filter, d = held.AdvanceDelta()
			positions = d.AppendPositions(nil)
		}
		method := arith.Choose(geometry.Bits, uint64(len(positions)))
		sent = append(sent, 8*float64(len(arith.AppendSet(nil, method, geometry.Bits, positions)))/measuredKeys)
		rates = append(rates, filter.FalsePositiveRate())
		if m.counted {
			for range m.probes*(i+1)/filters - m.probes*i/filters {
				if filter.MayContain(digest.Key(rng.Uint64())) {
					hits++
				}
			}
		}
	}
	m.sent = meanOf(sent)
	if m.f = meanOf(rates); m.counted {
		m.f = counted(float64(hits), float64(m.probes), 1)
	}
	return m, nil
}
