package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var sizeUnits = map[string]int64{
	"B":   1,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// ParseSize reads a number of bytes: a whole number followed by a unit, without a space. The units
// are powers of 1024 or of 1000. Only 0 needs no unit, because a bare number is usually a mistake:
// nobody means 10 bytes.
func ParseSize(s string) (int64, error) {
	unit := strings.TrimLeft(s, "0123456789")
	number := strings.TrimSuffix(s, unit)
	factor, known := sizeUnits[unit]
	if !known && number != "" && strings.Trim(s, "0") == "" {
		return 0, nil
	}
	if !known || number == "" {
		return 0, errors.New("is not a size: want a whole number and one of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB, " +
			"such as 512MiB")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/factor {
		return 0, errors.New("is more bytes than 64 bits can count")
	}
	return n * factor, nil
}
