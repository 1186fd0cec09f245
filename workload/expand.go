// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

// Made-up tokens come in runs: a head followed by a body that depends on the
// head and the position. The space of 32-bit tokens has four quarters, so that
// runs which are different never look alike by accident:
//
//	[0, 2^30)       heads of shared runs: blocks and pieces of generated prompts
//	[2^30, 2^31)    bodies of shared runs
//	[2^31, 3*2^30)  heads of own streams: fillers and outputs of one request
//	[3*2^30, 2^32)  bodies of own streams
//
// Heads of shared runs are numbered by first appearance, heads of own streams
// follow from the request's index, two a request. So a head occurs in one run
// only and in no body: sequences that continue with different runs at the same
// position differ in the very first token there, wherever the runs stand.
//
// The plain token format and the random tree bring tokens of their own, to which
// the quarters do not apply; an output invented for such a request starts in the
// third quarter all the same.
const (
	regionSize  uint32 = 1 << 30
	ownRegion   uint32 = 2 * regionSize
	maxRequests        = regionSize / 2
)

func promptStream(stream uint32) uint32 { return ownRegion + 2*stream }
func outputStream(stream uint32) uint32 { return ownRegion + 2*stream + 1 }

// fillRun fills out with the first len(out) tokens of the run with this head.
func fillRun(out []uint32, head uint32) {
	if len(out) == 0 {
		return
	}
	out[0] = head
	body := head&ownRegion | regionSize
	x := head * 0x9e3779b1
	for i := 1; i < len(out); i++ {
		x += 0x85ebca6b
		h := (x ^ x>>15) * 0x2c1b3ce5
		h = (h ^ h>>12) * 0x297a2d39
		out[i] = body | (h^h>>15)&(regionSize-1)
	}
}

// source gives the tokens of a prompt or an output.
type source interface {
	// fill writes the first tokens to out, as many as out takes and the source
	// has, and says how many.
	fill(out []uint32) int
}

// run is a source: one shared run of any length.
type run uint32

func (r run) fill(out []uint32) int {
	fillRun(out, uint32(r))
	return len(out)
}

// tokenList is a source: the tokens themselves.
type tokenList []uint32

func (t tokenList) fill(out []uint32) int { return copy(out, t) }

// blockList is a source: one run of size tokens a block.
type blockList struct {
	size int
	ids  []uint32 // dense: each is the head of its run
}

func (b *blockList) fill(out []uint32) int {
	done := 0
	for _, id := range b.ids {
		n := min(b.size, len(out)-done)
		if n == 0 {
			break
		}
		fillRun(out[done:done+n], id)
		done += n
	}
	return done
}

// piece is a source: a sequence that extends another one. Sequences that begin
// alike share their pieces.
type piece struct {
	parent *piece
	end    int       // tokens up to and with this piece
	length int       // tokens of this piece
	head   uint32    // head of its run
	tokens tokenList // set: the tokens themselves instead of a run
	repeat bool      // set: head, length times
}

// then extends p, which may be nil, by a run.
func (p *piece) then(head uint32, length int) *piece {
	end := length
	if p != nil {
		end += p.end
	}
	return &piece{parent: p, end: end, length: length, head: head}
}

// size gives the tokens of the sequence; nil is the empty sequence.
func (p *piece) size() int {
	if p == nil {
		return 0
	}
	return p.end
}

func (p *piece) fill(out []uint32) int {
	total := min(p.end, len(out))
	for ; p != nil; p = p.parent {
		start := p.end - p.length
		if start >= total {
			continue
		}
		part := out[start:min(p.end, total)]
		switch {
		case p.tokens != nil:
			copy(part, p.tokens)
		case p.repeat:
			for i := range part {
				part[i] = p.head
			}
		default:
			fillRun(part, p.head)
		}
	}
	return total
}

// numbering hands out the heads of shared runs: 0, 1, 2 and so on. Ids of the
// source get the next head when they first appear in their scope.
type numbering struct {
	next, limit uint32
	scope       map[uint64]uint32
}

func newNumbering(limit uint32) numbering {
	return numbering{limit: limit, scope: map[uint64]uint32{}}
}

// newScope forgets the ids seen; equal ids get other heads from now on.
func (n *numbering) newScope() { n.scope = map[uint64]uint32{} }

// fresh gives a head that was not given before, or false when all are used up.
func (n *numbering) fresh() (uint32, bool) {
	if n.next >= n.limit {
		return 0, false
	}
	n.next++
	return n.next - 1, true
}

// number turns ids of the source into heads.
func (n *numbering) number(ids []uint64) ([]uint32, *fieldError) {
	heads := make([]uint32, len(ids))
	for i, id := range ids {
		head, known := n.scope[id]
		if !known {
			var ok bool
			if head, ok = n.fresh(); !ok {
				return nil, &fieldError{
					found: "more different block ids than can be told apart",
					want:  "at most " + count(int(n.limit), "different id") + " in a file; split it, or read it with a limit",
				}
			}
			n.scope[id] = head
		}
		heads[i] = head
	}
	return heads, nil
}
