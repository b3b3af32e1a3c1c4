package admin

import (
	_ "embed" // for the metrics
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// A family is one metric. It is a counter if its name ends in _total, otherwise a gauge.
type family struct{ name, label, from, help string }

// families are the metrics of a peer, a line each: name, label ("" = none), where its samples are in a [Status], and
// what they mean. Where is a place, by the names in the JSON: exchange.rejected. A length is that of a list, a time is
// Unix time, and none if it is zero; with a ! before it, 1 stands for what is empty. Further places behind a - are
// subtracted. With labels it is LABEL=PLACE, some of these; *=PLACE for the entries of an object; or LIST/KEY=PLACE for
// the items of a list, each by the text at its key, where PLACE:TEXT is 1 for that text. Some are in [apart].
// Names are an interface: METRICS.md is made of this file.
//
//go:embed metrics.txt
var metrics string

func families() (list []family) {
	for line := range strings.Lines(metrics) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " | ", 4)
		list = append(list, family{f[0], f[1], f[2], f[3]})
	}
	return list
}

func (f *family) counts() bool { return strings.HasSuffix(f.name, "_total") }

// apart are the metrics whose samples follow from several places.
var apart = map[string]func(s *Status, yield func(string, float64)){
	"peer_build_info": func(s *Status, yield func(string, float64)) { yield(s.Version, 1) },
	"peer_degraded": func(s *Status, yield func(string, float64)) {
		for _, part := range degradable {
			yield(part, truth(slices.ContainsFunc(s.Health.Degraded, func(t Trouble) bool { return t.Part == part })))
		}
	},
	"peer_member_up": func(s *Status, yield func(string, float64)) {
		for _, m := range s.Members {
			if m.State != "left" {
				yield(m.Name, truth(m.Here()))
			}
		}
	},
}

// samples calls yield for each sample of a status, with the value of its label.
func (f *family) samples(s *Status, yield func(label string, value float64)) {
	if of := apart[f.name]; of != nil {
		of(s, yield)
		return
	}
	all := reflect.ValueOf(s).Elem()
	for part := range strings.FieldsSeq(f.from) {
		label, place, labelled := strings.Cut(part, "=")
		switch list, key, listed := strings.Cut(label, "/"); {
		case !labelled:
			sample(all, part, "", yield)
		case listed:
			items := at(all, list)
			place, text, compared := strings.Cut(place, ":")
			name, value := indexOf(items.Type().Elem(), key), indexOf(items.Type().Elem(), place)
			for _, item := range items.Seq2() {
				v := item.FieldByIndex(value)
				n := number(v)
				if compared {
					n = truth(v.String() == text)
				}
				yield(item.FieldByIndex(name).String(), n)
			}
		case label == "*":
			for name, n := range at(all, place).Seq2() {
				yield(name.String(), number(n))
			}
		default:
			sample(all, place, label, yield)
		}
	}
}

// sample calls yield with the number at a place, unless that is the zero time.
func sample(all reflect.Value, place, label string, yield func(string, float64)) {
	if path, empty := strings.CutPrefix(place, "!"); empty {
		yield(label, truth(at(all, path).IsZero()))
		return
	}
	parts := strings.Split(place, "-")
	first := at(all, parts[0])
	if t, ok := first.Interface().(time.Time); ok && t.IsZero() {
		return
	}
	n := number(first)
	for _, part := range parts[1:] {
		n -= number(at(all, part))
	}
	yield(label, max(0, n)) // counters are read one after another: parts may exceed the whole for a moment
}

// at returns what is at a place; it panics if there is no such place.
func at(v reflect.Value, place string) reflect.Value {
	for name := range strings.SplitSeq(place, ".") {
		v = v.FieldByIndex(indexOf(v.Type(), name))
	}
	return v
}

// indexOf returns the index of the field with a name in JSON, also in a struct that is embedded.
func indexOf(t reflect.Type, name string) []int {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Index
		}
	}
	panic(fmt.Sprintf("metrics.txt: %v has no field with json:%q", t, name))
}

func number(v reflect.Value) float64 {
	switch n := v.Interface().(type) {
	case bool:
		return truth(n)
	case time.Time:
		return float64(n.UnixMilli()) / 1000
	}
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return float64(v.Len())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A collector gets one status for each scrape, so that all values of a scrape are of the same
// moment.
type collector func() Status

// Describe implements [prometheus.Collector]. It names no metric, which leaves them
// unchecked: a test checks the table.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c()
	for _, f := range families() {
		kind := prometheus.GaugeValue
		if f.counts() {
			kind = prometheus.CounterValue
		}
		var names []string
		if f.label != "" {
			names = []string{f.label}
		}
		desc := prometheus.NewDesc(f.name, f.help, names, nil)
		f.samples(&s, func(label string, value float64) {
			out <- prometheus.MustNewConstMetric(desc, kind, value, []string{label}[:len(names)]...)
		})
	}
}

// Durations measures how long requests take. It is safe for concurrent use.
type Durations struct {
	histogram *prometheus.HistogramVec
	outcomes  [engine.Outcomes]prometheus.Observer // by engine.Outcome
}

// NewDurations returns an empty one.
func NewDurations() *Durations {
	d := &Durations{histogram: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "peer_request_duration_seconds",
		Help:    "Time from a request's arrival to the end of its answer, by outcome as in peer_requests_total.",
		Buckets: prometheus.ExponentialBuckets(0.00025, 4, 10),
	}, []string{"outcome"})}
	for i := range d.outcomes {
		if i > 0 { // every request has an outcome
			d.outcomes[i] = d.histogram.WithLabelValues(engine.Outcome(i).String())
		}
	}
	return d
}

// Observe counts one finished request.
func (d *Durations) Observe(e proxy.Event) {
	d.outcomes[e.Outcome].Observe(e.Duration.Seconds())
}

// registry returns the collectors for /metrics.
func registry(status func() Status, durations *Durations) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector(status), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if durations != nil {
		r.MustRegister(durations.histogram)
	}
	return r
}
