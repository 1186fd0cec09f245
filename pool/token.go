// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package pool

// Token is a pool that gives and takes single slots, numbered from 1.
type Token struct{ Paged }

// NewToken returns a pool of size slots. A size below 0 or beyond 32 bits is an
// *ArgumentError.
func NewToken(name string, size int) (*Token, error) {
	p, err := NewPaged(name, size, 1)
	if err != nil {
		return nil, err
	}
	return &Token{*p}, nil
}
