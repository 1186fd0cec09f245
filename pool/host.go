// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"sync"

	"github.com/treecore/treecore/tree"
)

// Host is a pool of slots in host memory: whole pages of the slots 0 .. N-1.
// Unlike a device pool it uses slot 0, and it may be called from several
// goroutines at once, since the end of an I/O operation may free slots (rules
// AL-26, AL-27). NewHost makes one.
type Host struct {
	mu    sync.Mutex
	pages Paged
}

// NewHost returns a host pool of size slots in pages of page slots. A rest of
// size that does not fill a page is not used. Errors are those of NewPaged.
func NewHost(name string, size, page int) (*Host, error) {
	p, err := NewPaged(name, size, page)
	if err != nil {
		return nil, err
	}
	p.first = 0
	return &Host{pages: *p}, nil
}

// Name returns the pool's name.
func (h *Host) Name() string { return h.pages.name }

// PageSize returns the number of slots in a page.
func (h *Host) PageSize() int { return h.pages.page }

// Size returns the number of slots, those of whole pages.
func (h *Host) Size() int { return h.pages.Size() }

// Available returns the number of free slots.
func (h *Host) Available() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pages.Available()
}

// Alloc returns n slots, a multiple of the page; see Paged.Alloc.
func (h *Host) Alloc(n int) (tree.Slots, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pages.Alloc(n)
}

// Free takes back the pages that the list touches; see Paged.Free.
func (h *Host) Free(list tree.Slots) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pages.Free(list)
}

// Clear brings the pool back to its initial state.
func (h *Host) Clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages.Clear()
}

// FreeSlots returns all free slots in rising order.
func (h *Host) FreeSlots() tree.Slots {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pages.FreeSlots()
}

// Check verifies the pool's own books.
func (h *Host) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pages.Check()
}
