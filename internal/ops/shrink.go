// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "time"

// shrink takes lines out of a failing story while it still fails, in runs of
// halves first and single lines last (delta debugging), until nothing can go or
// the time is up. It returns the shortest story found and how it fails.
func shrink(config RandomConfig, newA, newB NewMachine, lines []string, until time.Time) ([]string, *Mismatch) {
	fails := func(candidate []string) *Mismatch {
		m, err := Compare(config.Options, newA, newB, candidate)
		if err != nil || m == nil {
			return nil
		}
		return m
	}
	best := fails(lines)
	if best == nil {
		return lines, nil
	}
	kind := best.kind
	lines = lines[:best.Line+1]
	for chunk := max(len(lines)/2, 1); ; {
		removed := false
		for at := 0; at < len(lines) && time.Now().Before(until); {
			candidate := make([]string, 0, len(lines))
			candidate = append(candidate, lines[:at]...)
			candidate = append(candidate, lines[min(at+chunk, len(lines)):]...)
			if m := fails(candidate); m != nil && m.kind == kind {
				lines, best, removed = candidate[:m.Line+1], m, true
				continue
			}
			at += chunk
		}
		if !time.Now().Before(until) || chunk == 1 && !removed {
			return lines, best
		}
		if !removed {
			chunk = max(chunk/2, 1)
		}
	}
}
