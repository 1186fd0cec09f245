// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package house holds the house rules that a program can check: which package
// may import which, where a clock may be read, what every file begins with.
// Its tests fail with the rule and the reason.
package house
