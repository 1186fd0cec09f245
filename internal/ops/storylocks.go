// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/treecore/treecore/tree"

func (s *Story) lockVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	skip, err := argument(a, "skip", parseSet, 0)
	if err != nil {
		return "", err
	}
	r, err := s.m.Lock(node, skip)
	if err != nil {
		return s.run.fault(err), nil
	}
	if as, ok := a.text("as"); ok {
		s.receipts[as] = &heldLock{node: node, receipt: r}
	}
	return s.run.receipt(r), nil
}

// release reads the receipt and the node, which is the receipt's anchor unless
// the line names another one to show what happens.
func (s *Story) release(a *arguments) (*heldLock, tree.NodeID, error) {
	h, err := required(a, "receipt", s.held)
	if err != nil {
		return nil, 0, err
	}
	node, err := argument(a, "node", s.resolve, h.node)
	return h, node, err
}

func (s *Story) unlockVerb(a *arguments) (string, error) {
	h, node, err := s.release(a)
	if err != nil {
		return "", err
	}
	err = s.m.Unlock(node, h.receipt, a.has("skip-swa") || h.released)
	if err == nil {
		s.given(a)
	}
	return s.releaseText(h, node, err), nil
}

// given forgets a receipt that a random story has used up, so that no line that
// is left of a shrunk script releases somebody else's lock with it.
func (s *Story) given(a *arguments) {
	if name, _ := a.text("receipt"); s.quiet {
		delete(s.receipts, name)
	}
}

// releaseText answers a release. Which of two errors is due for a live node and
// a receipt whose anchor is gone is left open (example X-A-2).
func (s *Story) releaseText(h *heldLock, node tree.NodeID, err error) string {
	if err != nil && node != h.receipt.Node && s.m.Contains(node) && h.receipt.Node != tree.NoNode && !s.m.Contains(h.receipt.Node) &&
		(is[*tree.NodeAccessError](err) || is[*tree.ReceiptError](err)) {
		return "error: node-access or receipt"
	}
	return s.run.done(err)
}

func (s *Story) releaseSWAVerb(a *arguments) (string, error) {
	h, node, err := s.release(a)
	if err != nil {
		return "", err
	}
	if s.quiet && h.released {
		return "released already", nil
	}
	v, err := s.m.ReleaseSWALock(node, h.receipt)
	if err != nil {
		return s.releaseText(h, node, err), nil
	}
	h.released = true
	return s.run.evicted(v, nil), nil
}

func (s *Story) releaseWindowVerb(a *arguments) (string, error) {
	h, node, err := s.release(a)
	if err != nil {
		return "", err
	}
	c, err := argument(a, "component", parseComponent, tree.SWA)
	if err != nil {
		return "", err
	}
	if s.quiet && h.released {
		return "released already", nil
	}
	v, err := s.m.ReleaseWindowLock(node, c, h.receipt)
	if err != nil {
		return s.releaseText(h, node, err), nil
	}
	h.released = true
	return s.run.evicted(v, nil), nil
}

// pinVerb and unpinVerb pair pins by name, as lock and unlock do.
func (s *Story) pinVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	if err := s.m.PinFull(node); err != nil {
		return s.run.fault(err), nil
	}
	if as, ok := a.text("as"); ok {
		s.pins[as] = node
	}
	return "ok", nil
}

func (s *Story) unpinVerb(a *arguments) (string, error) {
	name, _ := a.text("pin")
	node, ok := s.pins[name]
	if !ok {
		return "", &ParseError{Verb: a.verb, Field: "pin", Problem: "no pin has this name", Remedy: "name one with pin ... as=name first"}
	}
	delete(s.pins, name)
	return s.run.done(s.m.UnpinFull(node)), nil
}

func (s *Story) lockHostVerb(a *arguments) (string, error) {
	node, err := required(a, "node", s.resolve)
	if err != nil {
		return "", err
	}
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	r, err := m.LockHost(node)
	if err != nil {
		return s.run.fault(err), nil
	}
	if as, ok := a.text("as"); ok {
		s.receipts[as] = &heldLock{node: node, receipt: r}
	}
	return s.run.hostReceipt(r), nil
}

func (s *Story) unlockHostVerb(a *arguments) (string, error) {
	h, node, err := s.release(a)
	if err != nil {
		return "", err
	}
	m, text := s.hostMachine()
	if m == nil {
		return text, nil
	}
	if err = m.UnlockHost(node, h.receipt); err == nil || is[*tree.NodeAccessError](err) && node == h.node {
		s.given(a)
	}
	return s.releaseText(h, node, err), nil
}
