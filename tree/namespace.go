// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// namespace is an interned Namespace: nodes of one namespace share a pointer.
// It lives while a node refers to it.
type namespace struct {
	name  Namespace
	nodes int    // nodes that refer to it
	mix   uint64 // tells the first pages of different namespaces apart in hashes
}

type namespaces struct {
	byName map[Namespace]*namespace
	plain  *namespace // the default one, which most keys are in
	made   uint64
}

func (s *namespaces) clear() { s.byName, s.plain = map[Namespace]*namespace{}, nil }

// find returns the namespace if a node uses it, else nil.
func (s *namespaces) find(name Namespace) *namespace {
	if name == (Namespace{}) {
		return s.plain
	}
	return s.byName[name.canonical()]
}

// retain returns the namespace, for one more node.
func (s *namespaces) retain(name Namespace) *namespace {
	name = name.canonical()
	ns := s.byName[name]
	if ns == nil {
		s.made++
		ns = &namespace{name: name, mix: s.made * 0x9e3779b97f4a7c15}
		s.byName[name] = ns
		if name == (Namespace{}) {
			s.plain = ns
		}
	}
	ns.nodes++
	return ns
}

// release gives up one node's use.
func (s *namespaces) release(ns *namespace) {
	if ns.nodes--; ns.nodes == 0 {
		delete(s.byName, ns.name)
		if ns == s.plain {
			s.plain = nil
		}
	}
}
