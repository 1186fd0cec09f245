// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

// attachVerb gives back an SWA window with fresh slots, whose Full partners
// are those that the tree holds.
func (s *Story) attachVerb(a *arguments) (string, error) {
	k, err := s.key(a)
	if err != nil {
		return "", err
	}
	start, err := required(a, "start", parseInt)
	if err != nil {
		return "", err
	}
	end, err := required(a, "end", parseInt)
	if err != nil {
		return "", err
	}
	var numbers []uint32
	if a.has("slots") {
		slots, err := argument(a, "slots", parseSlots, nil)
		if err != nil {
			return "", err
		}
		if numbers, err = numbersOf(slots, 0); err != nil {
			return "", &ParseError{Verb: a.verb, Field: "slots", Problem: err.Error()}
		}
	} else {
		numbers = s.pools.swas.alloc(min(max(end-start, 0), MaxListLen))
		for _, n := range numbers {
			s.pools.swas.release(n)
		}
	}
	full := s.treeSlots(k, max(end, 0))
	actions, err := s.m.AttachSWAWindow(k, start, end, slotsFrom(numbers, swaBase))
	if err != nil {
		return s.run.fault(err), nil
	}
	partners := s.pools.numbers(full, 0)
	for i, n := range numbers {
		s.pools.swas.take(n)
		if at := start + i; at >= 0 && at < len(partners) {
			s.pools.setTwin(partners[at], n)
		}
	}
	s.relocate(actions)
	return s.run.actions(actions), nil
}
