// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

// HostDoor is what a machine may offer to tests: host copies appear without
// transfers. Like any host value they come with the list and set memberships
// that the rules ask for.
type HostDoor interface {
	// SetHostValue gives the component of the node its host value; a node that
	// has one is an error.
	SetHostValue(id tree.NodeID, c tree.Component, slots tree.Slots) error
	// SetPending marks the node as being written through under this ack id;
	// 0 clears the mark.
	SetPending(id tree.NodeID, ack int64) error
}

const noDoor = "this machine has no test door for host values"

// hostCopyVerb gives a node and its ancestors host copies out of nothing.
func (s *Story) hostCopyVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	door, ok := s.m.(HostDoor)
	if !ok {
		return noDoor, nil
	}
	var path []tree.NodeInfo
	for id := node; id != tree.NoNode; {
		info, err := s.m.Inspect(id)
		if err != nil {
			return s.run.fault(err), nil
		}
		if info.Parent != tree.NoNode {
			path = append(path, info)
		}
		id = info.Parent
	}
	for i := len(path) - 1; i >= 0; i-- {
		if text := s.copyToHost(door, &path[i], tree.Full); text != "" {
			return text, nil
		}
	}
	for _, c := range []tree.Component{tree.SWA, tree.Mamba} {
		if a.has(c.String()) && len(path) > 0 {
			if text := s.copyToHost(door, &path[0], c); text != "" {
				return text, nil
			}
		}
	}
	return "ok", nil
}

// copyToHost gives one value a host copy if it has none; the text is an error.
func (s *Story) copyToHost(door HostDoor, n *tree.NodeInfo, c tree.Component) string {
	v := &n.Components[c]
	if v.Host != nil || v.Device == nil {
		return ""
	}
	slots := s.pools.host[c].alloc(v.Device.Len())
	if err := door.SetHostValue(n.ID, c, slotsFrom(slots, 0)); err != nil {
		for _, h := range slots {
			s.pools.host[c].release(h)
		}
		return s.run.fault(err)
	}
	return ""
}

func (s *Story) setHostVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	c, err := argument(a, "component", parseComponent, tree.Full)
	if err != nil {
		return "", err
	}
	slots, err := required(a, "slots", parseSlots)
	if err != nil {
		return "", err
	}
	door, ok := s.m.(HostDoor)
	if !ok {
		return noDoor, nil
	}
	if err := door.SetHostValue(node, c, slots); err != nil {
		return s.run.fault(err), nil
	}
	for _, h := range s.pools.numbers(slots, 0) {
		s.pools.host[c].take(h)
	}
	return "ok", nil
}

func (s *Story) setPendingVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	ack, err := required(a, "ack", parseInt64)
	if err != nil {
		return "", err
	}
	door, ok := s.m.(HostDoor)
	if !ok {
		return noDoor, nil
	}
	return s.run.done(door.SetPending(node, ack)), nil
}
