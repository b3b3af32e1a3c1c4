//go:build linux

package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// writeLife writes the samples to life.csv.
func writeLife(dir string, samples []lifeSample) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "life.csv"))
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	kind := reflect.TypeFor[lifeSample]()
	var head []string
	for i := range kind.NumField() {
		head = append(head, kind.Field(i).Name)
	}
	w.Write(head)
	for _, s := range samples {
		var row []string
		for i := range kind.NumField() {
			row = append(row, strconv.FormatFloat(reflect.ValueOf(s).Field(i).Float(), 'g', 6, 64))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}

// TestLifeTable: the table has a line for each sample, and its head.
func TestLifeTable(t *testing.T) {
	dir := t.TempDir()
	var samples []lifeSample
	for i := range 100 {
		samples = append(samples, lifeSample{Seconds: float64(i), Turns: float64(i) / 5, ResidentMiB: 50, HeapMiB: 20, Goroutines: 30, Files: 20,
			Median: 0.5, P99: float64(i % 7), FalsePositives: 0.1, Promised: 0.1, Objects: 4000})
	}
	if err := writeLife(dir, samples); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "life.csv"))
	if lines := strings.Count(string(text), "\n"); err != nil || lines != 101 || !strings.HasPrefix(string(text), "Seconds,") {
		t.Errorf("%d lines, %v: %.200s", lines, err, text)
	}
}
