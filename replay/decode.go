// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

// scheduleDecode lets a request generate its next tokens.
func (d *driver) scheduleDecode(j *job) {
	n := min(decodeStride, j.outputLeft())
	d.events.schedule(event{at: d.link.begin(d.now) + duration(n, d.o.DecodeRate), kind: eventDecode, job: j, run: j.run})
}

// decode puts the tokens that a request has generated since the last time into
// the cache, and takes the youngest running request off while slots are short.
func (d *driver) decode(j *job) error {
	if len(j.tokens) == j.request.InputLen {
		j.tokens = j.request.AppendOutput(j.tokens)
	}
	for n := min(decodeStride, j.outputLeft()); n > 0; {
		at := j.request.InputLen + j.decoded
		done, err := d.cache.decode(j.live, j.tokens[at:at+d.stamps.stride(j, n)])
		if wrong := d.stamps.decoded(j, at, done); wrong != nil {
			return wrong
		}
		j.decoded += done
		n -= done
		short, err := isShort(err)
		if short {
			waited, err := d.mayWait()
			if err != nil {
				return err
			}
			if waited {
				continue
			}
		}
		lack := neverFits(err)
		switch {
		case lack != nil || short && len(d.running) == 1:
			return d.giveUp(j, lack)
		case err != nil:
			return err
		case !short:
			continue
		}
		youngest := d.running[len(d.running)-1]
		if err := d.retract(youngest); err != nil {
			return err
		}
		if youngest == j {
			return nil
		}
	}
	if j.outputLeft() > 0 {
		d.scheduleDecode(j)
		return nil
	}
	return d.finish(j)
}

// finish ends a request that has generated everything.
func (d *driver) finish(j *job) error {
	if err := d.cache.finish(j.live); err != nil {
		return err
	}
	d.stop(j)
	d.rec.done(j, d.now)
	d.blocked = false
	d.end(j, Outcome{
		Request: j.index, Runs: j.run, Input: j.request.InputLen, Cached: j.reused, Host: j.fromHost, Storage: j.fromStore,
		Reused: j.start, Computed: j.computed - j.start, Output: j.decoded,
		Ready: j.ready, Begun: j.begun, FirstToken: j.first, End: d.now,
	})
	return nil
}

// retract takes a running request off. It stands in line again, in its old
// place; until a request has ended nobody is admitted.
func (d *driver) retract(j *job) error {
	if err := d.cache.abort(j.live); err != nil {
		return err
	}
	d.rec.retracted()
	d.stop(j)
	d.blocked = true
	return d.join(j)
}

// giveUp ends a running request that finds no slots and never will: it runs
// alone, or the cache has said what it lacks.
func (d *driver) giveUp(j *job, lack *Lack) error {
	if err := d.cache.abort(j.live); err != nil {
		return err
	}
	d.stop(j)
	d.blocked = false
	if lack == nil {
		l := d.sizes.lack(j.request.InputLen, j.request.OutputLen)
		lack = &l
	}
	d.refuse(j, *lack)
	return nil
}

// refuse ends a request that does not fit. It holds nothing.
func (d *driver) refuse(j *job, l Lack) {
	d.drop(j)
	d.rec.refused(j, l)
	d.end(j, Outcome{Request: j.index, Refused: true, Runs: j.run, Input: j.request.InputLen, Ready: j.ready, End: d.now})
}
