package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A verdict says how a printed number relates to the right value.
type verdict int

const (
	nearest  verdict = iota // the computed value, rounded to as many digits
	adjacent                // within one unit of the last digit: rounded the other way, or cut off
	wrong
)

// judge compares a printed number with the right value.
func judge(printed json.Number, computed float64) verdict {
	value, err := printed.Float64()
	if err != nil {
		return wrong
	}
	// The last digits of a float64 must not decide on which side of a decimal tie a value is.
	const slack = 1e-9
	switch off := math.Abs(value-computed) / lastUnit(printed); {
	case off <= 0.5+slack:
		return nearest
	case off < 1:
		return adjacent
	}
	return wrong
}

// lastUnit returns the value of one unit of the last printed digit: 0.001 for 0.400, 1e-07 for
// 7.9e-06.
func lastUnit(printed json.Number) float64 {
	mantissa, exponent, _ := strings.Cut(string(printed), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	shift, _ := strconv.Atoi(exponent)
	return math.Pow10(shift - len(decimals))
}

// inStyle formats x with as many digits as the printed number has.
func inStyle(printed json.Number, x float64) string {
	mantissa, _, scientific := strings.Cut(string(printed), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	if scientific {
		return strconv.FormatFloat(x, 'e', len(decimals), 64)
	}
	return strconv.FormatFloat(x, 'f', len(decimals), 64)
}

// roundingNote says how an adjacent value was rounded.
func roundingNote(printed json.Number, computed float64) string {
	value, _ := printed.Float64()
	how := "cut off"
	if math.Abs(value) > math.Abs(computed) {
		how = "rounded up"
	}
	return fmt.Sprintf("%s: the nearest is %s", how, inStyle(printed, computed))
}
