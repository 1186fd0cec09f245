// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct {
	pool *mpb.Progress
	bar  *mpb.Bar
}

// newProgress draws a bar on w, for a number of things of some kind, if that is a
// terminal and it is wanted.
func newProgress(w io.Writer, things string, total int64, wanted bool) *progress {
	f, ok := w.(*os.File)
	if !wanted || !ok || !isTerminal(f) {
		return &progress{}
	}
	pool := mpb.New(mpb.WithOutput(f), mpb.WithWidth(60))
	bar := pool.AddBar(total, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.CountersNoUnit("%d of %d "+things)),
		mpb.AppendDecorators(decor.Percentage()))
	return &progress{pool: pool, bar: bar}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb"
}

// set says how many are done.
func (p *progress) set(n int64) {
	if p.bar != nil {
		p.bar.SetCurrent(n)
	}
}

// done takes the bar away and waits until the terminal is free.
func (p *progress) done() {
	if p.bar == nil {
		return
	}
	if !p.bar.Completed() {
		p.bar.Abort(true)
	}
	p.pool.Wait()
}
