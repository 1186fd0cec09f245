// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

func (s *Story) offloadVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	if a.has("fail") {
		s.host.fails++
	}
	return s.runOffload(m, node, !a.has("no-lock")), nil
}

// runOffload hands a node to the external linker (rule XL-9).
func (s *Story) runOffload(m HostMachine, node tree.NodeID, lock bool) string {
	spec, err := m.BuildOffload(node)
	if err != nil {
		return s.run.fault(err)
	}
	if spec == nil {
		return "stored or pending"
	}
	if s.host.fails > 0 {
		s.host.fails--
		return "refused"
	}
	w := &hostWrite{ack: int64(node), target: node, publish: []tree.NodeID{node}, locked: lock}
	if lock {
		if w.receipt, err = m.Lock(node, 0); err != nil {
			s.pools.problem("locking a node that is offloaded: %v", err)
		}
	}
	if err := m.MarkOffloadPending(node); err != nil {
		s.pools.problem("marking an offload: %v", err)
	}
	s.host.offloads = append(s.host.offloads, w)
	return s.run.offload(spec)
}

// ackOffloadVerb delivers the ack of the oldest offload, or of the one whose
// node is named (rule XL-8).
func (s *Story) ackOffloadVerb(a *arguments) (string, error) {
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	at, list := 0, s.host.offloads
	if a.has("node") {
		node, err := required(a, "node", s.resolve)
		if err != nil {
			return "", err
		}
		for at < len(list) && list[at].target != node {
			at++
		}
	}
	if at >= len(list) {
		return "nothing is in flight", nil
	}
	w := list[at]
	s.host.offloads = append(list[:at:at], list[at+1:]...)
	text = s.run.nodesText(w.publish)
	if err := m.FinishOffload(w.publish, w.ack, !a.has("failed")); err != nil {
		text = s.run.fault(err)
	}
	if w.locked {
		if err := m.Unlock(w.target, w.receipt, false); err != nil {
			s.pools.problem("releasing the lock of an offload: %v", err)
		}
	}
	return text, nil
}
