// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"

	"github.com/treecore/treecore/cache"
)

// startStep begins a prefill step if none is in flight and there is work: it
// decides what the step computes, and takes the slots for it.
func (d *driver) startStep() error {
	if len(d.step) > 0 {
		return nil
	}
	left := d.sizes.chunk
	if j := d.partial; j != nil {
		n := d.chunk(j, left)
		short, err := isShort(d.cache.extend(j.live, n))
		for short && len(d.running) == 1 {
			waited, wait := d.awaitWrite()
			if wait != nil {
				return wait
			}
			if !waited {
				break
			}
			short, err = isShort(d.cache.extend(j.live, n))
		}
		lack := neverFits(err)
		switch {
		case err != nil && lack == nil:
			return err
		case short && len(d.running) > 1:
			return nil // the others generate, and end or take this one off
		case short || lack != nil:
			if err := d.giveUp(j, lack); err != nil {
				return err
			}
		default:
			d.partial = nil
			left -= d.take(j, n)
		}
	}
	for left > 0 && d.partial == nil {
		n, err := d.admit(left)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		left -= n
	}
	if _, err := d.cache.c.StartLoading(); err != nil {
		return err
	}
	if len(d.step) > 0 {
		// The step computes layer by layer while the layers are loaded: it takes
		// the longer of the two.
		tokens := d.sizes.chunk - left
		end := d.link.begin(d.now) + duration(tokens, d.o.PrefillRate)
		d.events.schedule(event{at: max(end, d.link.loaded()), kind: eventStep})
	}
	return nil
}

// take makes n prompt tokens of a request part of the step. A prompt that goes
// on afterwards takes all that was left of the step.
func (d *driver) take(j *job, n int) int {
	d.step = append(d.step, part{job: j, run: j.run, n: n})
	return n
}

// chunk gives how much of a prompt fits the rest of a step: all that is left of
// the prompt, or else as far as whole pages go.
func (d *driver) chunk(j *job, left int) int {
	if j.promptLeft() <= left {
		return j.promptLeft()
	}
	end := j.computed + left
	return max(0, end-end%d.o.PageSize-j.computed)
}

// endStep hands the computed chunks to the tree, and lets those whose prompt is
// done generate.
func (d *driver) endStep() error {
	step := d.step
	d.step = d.step[:0]
	for _, p := range step {
		j := p.job
		if !j.running || j.run != p.run {
			continue // was taken off meanwhile
		}
		if err := d.stamps.computed(j, p.n); err != nil {
			return err
		}
		if err := d.cache.commit(j.live, p.n); err != nil {
			return err
		}
		j.computed += p.n
		d.rec.computed += int64(p.n)
		// A state that found no slot is not kept; the request goes on.
		if _, err := isShort(d.cache.cacheUnfinished(j.live)); err != nil {
			return err
		}
		switch {
		case j.promptLeft() > 0:
			d.partial = j
		case j.request.OutputLen == 0:
			j.first = d.now
			if err := d.finish(j); err != nil {
				return err
			}
		default:
			j.first = d.now
			d.scheduleDecode(j)
		}
	}
	return nil
}

// admit starts the first request in line, if it fits, with at most left prompt
// tokens in this step, and gives how many it takes. 0: nobody was admitted.
func (d *driver) admit(left int) (int, error) {
	for {
		j := d.line.first()
		if j == nil || d.engaged() >= d.o.inFlight() || d.blocked && len(d.running) > 0 {
			return 0, nil
		}
		if lack := d.sizes.tooBig(j.request.InputLen, j.request.OutputLen); lack != nil {
			d.line.leave()
			if err := d.leave(j); err != nil {
				return 0, err
			}
			d.refuse(j, *lack)
			continue
		}
		switch ready, err := d.fetched(j); {
		case err != nil:
			return 0, err
		case !ready && d.line.listed:
			return 0, nil
		case !ready:
			continue
		}
		n, short, err := d.tryAdmit(j, left)
		if d.lostBase(j, err) {
			continue
		}
		if lack := neverFits(err); lack != nil {
			d.line.leave()
			if err := d.leave(j); err != nil {
				return 0, err
			}
			d.refuse(j, *lack)
			continue
		}
		switch {
		case err != nil:
			return 0, err
		case short && len(d.running) > 0:
			d.blocked = true
			if at, ok := d.link.next(); ok {
				d.events.schedule(event{at: at, kind: eventWake})
			}
			if at, ok := d.shelf.written(); ok && d.o.writePolicy == cache.WriteBack {
				d.events.schedule(event{at: at, kind: eventWake})
			}
			return 0, nil
		case short && d.o.bufferOnly:
			if wait, err := d.awaitCopies(); wait || err != nil {
				return 0, err
			}
			fallthrough
		case short:
			waited, err := d.awaitWrite()
			if err != nil {
				return 0, err
			}
			if waited {
				continue
			}
			d.line.leave() // it is alone, and still does not fit
			if err := d.leave(j); err != nil {
				return 0, err
			}
			d.refuse(j, d.sizes.lack(j.request.InputLen, j.request.OutputLen))
			continue
		}
		return n, nil
	}
}

// tryAdmit matches and locks a request's prompt and takes the slots of its first
// chunk. When something is short, nothing is left over. It gives 0 tokens when
// not even a page fits the rest of the step.
func (d *driver) tryAdmit(j *job, left int) (n int, short bool, err error) {
	r, err := d.waiting(j)
	if err != nil {
		return 0, false, err
	}
	if err := d.cache.match(r); err != nil {
		return 0, false, err
	}
	// A load back, or what was fetched to a staging area, takes slots for good: look
	// first whether it will be of use.
	if m := r.Match(); len(d.running) > 0 && (m.HostHitLen > 0 || d.o.bufferOnly) {
		j.computed = r.Matched()
		if n = d.chunk(j, left); n == 0 || !d.roomFor(j, n) {
			return 0, n > 0, d.standBy(j)
		}
	}
	if short, err = isShort(d.cache.admit(r)); short || err != nil {
		return 0, short, errors.Join(err, d.standBy(j))
	}
	// What an attempt has loaded that comes to nothing is still this request's.
	j.brought(r.Origin())
	j.computed, j.decoded = r.Protected(), 0
	if n = d.chunk(j, left); n == 0 {
		return 0, false, d.leave(j)
	}
	if len(d.running) > 0 && !d.roomFor(j, n) {
		return 0, true, d.leave(j)
	}
	if short, err = isShort(d.cache.extend(r, n)); short || err != nil {
		return 0, short, errors.Join(err, d.leave(j))
	}
	d.line.leave()
	j.live, j.running, j.start, j.waiting = r, true, r.Protected(), nil
	d.stamps.begin(j)
	j.run++
	if !j.admitted {
		j.begun = d.now
	}
	j.note(r.Protected(), r.Explanation())
	d.running = append(d.running, j)
	return d.take(j, n), false, nil
}
