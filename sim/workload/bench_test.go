package workload

import (
	"strings"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	for name, line := range map[string]string{"plain": "1 c /k 5\n", "combined": usual, "squid": squid[:len(squid)/3], "json": object1[:len(object1)/3]} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(line, 10_000)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Read("log", strings.NewReader(text), Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/line")
		})
	}
}
