// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/workload"
)

// maxSteps is the most runs in a sweep.
const maxSteps = 1000

// SweepDevice is the parameter that a sweep can vary.
const SweepDevice = "device-bytes"

// ParseSweep reads "device-bytes=10GiB..160GiB" or "device-bytes=10GiB..160GiB:9"
// and gives the sizes: geometric steps from the first to the last, each twice
// the one before, or as many as the number says.
func ParseSweep(text string) ([]int64, error) {
	bad := func(problem string) error {
		return fmt.Errorf("sweep %q: %s, as in %s=10GiB..160GiB or %s=10GiB..160GiB:9", text, problem, SweepDevice, SweepDevice)
	}
	name, span, ok := strings.Cut(text, "=")
	if !ok || name != SweepDevice {
		return nil, bad("must give a range of " + SweepDevice)
	}
	low, high, ok := strings.Cut(span, "..")
	if !ok {
		return nil, bad("must give a first and a last size")
	}
	steps := 0
	if size, number, more := strings.Cut(high, ":"); more {
		n, err := strconv.Atoi(number)
		if err != nil || n < 2 || n > maxSteps {
			return nil, bad(fmt.Sprintf("the number of steps must be from 2 to %d", maxSteps))
		}
		high, steps = size, n
	}
	from, err := model.ParseSize(low)
	if err != nil {
		return nil, bad(err.Error())
	}
	to, err := model.ParseSize(high)
	if err != nil {
		return nil, bad(err.Error())
	}
	if from == model.Unlimited || to == model.Unlimited || from >= to {
		return nil, bad("the first size must be below the last, and neither unlimited")
	}
	return geometric(from, to, steps), nil
}

// geometric gives so many sizes from one to the other with equal factors; 0
// steps: doubling, and the last one as given.
func geometric(from, to int64, steps int) []int64 {
	var sizes []int64
	if steps == 0 {
		for size := from; size < to && size > 0; size *= 2 {
			sizes = append(sizes, size)
		}
		return append(sizes, to)
	}
	factor := math.Pow(float64(to)/float64(from), 1/float64(steps-1))
	for i := range steps - 1 {
		sizes = append(sizes, int64(math.Round(float64(from)*math.Pow(factor, float64(i)))))
	}
	return append(sizes, to)
}

// RunSweep replays the workload once for each device size.
func RunSweep(ctx context.Context, w *workload.Workload, o Options, sizes []int64) (*Sweep, error) {
	if o.Bound == nil {
		b, err := NewBound(w, ctx.Done())
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, ctx.Err()
		}
		o.Bound = b
	}
	sweep := &Sweep{Runs: []*Report{}}
	progress := o.Progress
	for i, size := range sizes {
		o.DeviceBytes = size
		if progress != nil {
			o.Progress = func(ended int) { progress(i*len(w.Requests) + ended) }
		}
		r, err := Run(ctx, w, o)
		if err != nil {
			return nil, err
		}
		sweep.Runs = append(sweep.Runs, r)
	}
	return sweep, nil
}
