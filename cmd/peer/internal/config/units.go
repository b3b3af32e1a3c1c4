package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var sizeUnits = map[string]int64{
	"B":   1,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// ParseSize reads a number of bytes: a whole number and, without a blank, one of
// B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000). A
// number without a unit is refused unless it is 0: nobody means 10 bytes.
func ParseSize(s string) (int64, error) {
	digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(s)
	}
	number, unit := s[:digits], s[digits:]
	if number == "" {
		return 0, errors.New("is not a size: want a whole number and a unit, such as 512MiB or 10GiB")
	}
	factor, ok := sizeUnits[unit]
	switch {
	case unit == "" && strings.Trim(number, "0") == "":
		return 0, nil
	case unit == "":
		return 0, fmt.Errorf("has no unit: want %sB, %[1]sMiB, %[1]sGiB or the like", number)
	case !ok && meantUnit(unit) != "":
		return 0, fmt.Errorf("has no unit that is known: did you mean %s%s?", number, meantUnit(unit))
	case !ok:
		return 0, errors.New("is not a size: want a whole number and a unit, such as 512MiB or 10GiB")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/factor {
		return 0, errors.New("is more bytes than 64 bits can count")
	}
	return n * factor, nil
}

// meantUnit guesses the unit behind G, gb, gib, Gi and the like; "" = none.
func meantUnit(unit string) string {
	for known := range sizeUnits {
		for _, end := range []string{"iB", "B", ""} {
			if strings.EqualFold(unit+end, known) && (end != "B" || strings.HasSuffix(known, "iB")) {
				return known
			}
		}
	}
	return ""
}
