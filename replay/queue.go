// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"container/heap"
	"time"
)

// eventKind says what happens at a moment.
type eventKind uint8

const (
	eventReady  eventKind = iota // a request gets in line
	eventStep                    // the prefill step in flight is done
	eventDecode                  // a request has generated some tokens
	eventWake                    // a copy or a write has ended that kept slots locked, or for which others waited
	eventFetch                   // what is fetched from storage is there, or need not be waited for
)

// event is something that happens at a moment in virtual time.
type event struct {
	at   time.Duration
	seq  int // order among events of the same moment: that of scheduling
	kind eventKind
	job  *job
	run  int // the job's run that the event belongs to
}

// eventQueue gives events by time.
type eventQueue struct {
	list []event
	seq  int
}

func (q *eventQueue) Len() int      { return len(q.list) }
func (q *eventQueue) Swap(i, k int) { q.list[i], q.list[k] = q.list[k], q.list[i] }
func (q *eventQueue) Less(i, k int) bool {
	a, b := &q.list[i], &q.list[k]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}
func (q *eventQueue) Push(x any) { q.list = append(q.list, x.(event)) }
func (q *eventQueue) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}

func (q *eventQueue) schedule(e event) {
	e.seq = q.seq
	q.seq++
	heap.Push(q, e)
}

func (q *eventQueue) next() event { return heap.Pop(q).(event) }

// line is where requests wait for admission.
type line struct {
	list   []*job
	listed bool // in listed order
	next   int  // listed order: the request whose turn it is
}

func (l *line) Len() int      { return len(l.list) }
func (l *line) Swap(i, k int) { l.list[i], l.list[k] = l.list[k], l.list[i] }
func (l *line) Less(i, k int) bool {
	a, b := l.list[i], l.list[k]
	if !l.listed && a.ready != b.ready {
		return a.ready < b.ready
	}
	return a.index < b.index
}
func (l *line) Push(x any) { l.list = append(l.list, x.(*job)) }
func (l *line) Pop() any {
	n := len(l.list) - 1
	last := l.list[n]
	l.list[n], l.list = nil, l.list[:n]
	return last
}

func (l *line) join(j *job) { heap.Push(l, j) }

// first gives the request whose turn it is; nil if nobody may go.
func (l *line) first() *job {
	if len(l.list) == 0 || l.listed && l.list[0].index > l.next {
		return nil
	}
	return l.list[0]
}

// leave takes the first one out.
func (l *line) leave() {
	if j := heap.Pop(l).(*job); j.index == l.next {
		l.next++
	}
}
