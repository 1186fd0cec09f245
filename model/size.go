// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unlimited stands for as much memory as a workload can use.
const Unlimited int64 = math.MaxInt64

// sizeUnits are tried in order, so a unit stands before its own tails.
var sizeUnits = []struct {
	name   string
	factor float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15},
	{"B", 1},
}

// SizeError says that a text is not an amount of memory.
type SizeError struct{ Text string }

func (e *SizeError) Error() string {
	return fmt.Sprintf("size %q: must be a number with a unit, as 40GiB, 1.5TiB, 512MiB or 10GB, plain bytes, or unlimited", e.Text)
}

// ParseSize reads an amount of memory: 40GiB, 1.5TiB, 512MiB, 10GB, plain bytes.
// Case does not matter. "unlimited" gives Unlimited. A *SizeError reports
// anything else, 0 included.
func ParseSize(text string) (int64, error) {
	if strings.EqualFold(text, "unlimited") {
		return Unlimited, nil
	}
	digits, factor := text, 1.0
	for _, u := range sizeUnits {
		if n := len(text) - len(u.name); n > 0 && strings.EqualFold(text[n:], u.name) {
			digits, factor = strings.TrimRight(text[:n], " "), u.factor
			break
		}
	}
	if digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return 0, &SizeError{Text: text}
	}
	number, err := strconv.ParseFloat(digits, 64)
	bytes := number * factor
	switch {
	case err != nil || bytes >= math.MaxInt64 || bytes < 1:
		return 0, &SizeError{Text: text}
	}
	return int64(bytes), nil
}

// FormatSize writes an amount of memory with at most two decimals: 40GiB,
// 1.5TiB, 512MiB.
func FormatSize(bytes int64) string { return formatSize(bytes, math.Round) }

func formatSize(bytes int64, round func(float64) float64) string {
	if bytes == Unlimited {
		return "unlimited"
	}
	for i := 4; i >= 0; i-- {
		if u := sizeUnits[i]; float64(bytes) >= u.factor {
			return strconv.FormatFloat(round(float64(bytes)/u.factor*100)/100, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}
