// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/treecore/treecore/tree"
)

// Fingerprint says what the bytes of a store's pages mean. Two fingerprints
// that differ in one field share no page (rule ST-4, case C-017). There is no
// usable zero value: what is not said cannot be told apart.
type Fingerprint struct {
	// Model is the model's name. Required.
	Model string
	// Revision names the weights: a commit, or a digest of the files. Required:
	// new weights under an old name must not read old pages.
	Revision string
	// DType is the data type of the cached state, for example bf16. Required.
	DType string
	// PageSize is the number of units in a page, at least 1.
	PageSize int
	// Components is the set of components that are cached; it holds tree.Full.
	Components tree.ComponentSet
	// Window is the sliding window in units: at least 1 with tree.SWA, else 0.
	Window int
	// Ranks is the number of ranks that share the model's state, at least 1, and
	// Rank is the one whose shard the pages hold: 0 to Ranks-1.
	Ranks, Rank int
	// Layout is any further fact that changes the bytes of a page: how ranks
	// split heads and layers, the order of layers in a page, a bigram draft
	// model. Empty if there is none.
	Layout string
}

// field is one field in the canonical form.
type field struct{ name, value string }

func (f Fingerprint) fields() []field {
	return []field{
		{"model", f.Model},
		{"revision", f.Revision},
		{"dtype", f.DType},
		{"page-size", strconv.Itoa(f.PageSize)},
		{"components", f.Components.String()},
		{"window", strconv.Itoa(f.Window)},
		{"ranks", strconv.Itoa(f.Ranks)},
		{"rank", strconv.Itoa(f.Rank)},
		{"layout", f.Layout},
	}
}

// FingerprintID is the short form that stands in names and frames: the first
// half of a SHA-256.
type FingerprintID [16]byte

// String returns 32 lower-case hex digits.
func (id FingerprintID) String() string { return hex.EncodeToString(id[:]) }

const fingerprintText = "treecore-storage-fingerprint-v1"

// ID returns the first 16 bytes of the SHA-256 over the text
// treecore-storage-fingerprint-v1 and then, for each field in the order of the
// struct, its value's length as 8 bytes little-endian and its value as text.
// It is the same in every process and on every machine.
func (f Fingerprint) ID() FingerprintID {
	b := []byte(fingerprintText)
	for _, x := range f.fields() {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(x.value)))
		b = append(b, x.value...)
	}
	sum := sha256.Sum256(b)
	return FingerprintID(sum[:len(FingerprintID{})])
}

// Describe returns the fingerprint as indented JSON for people: backends leave
// it beside the pages, so that a store tells what it holds.
func (f Fingerprint) Describe() []byte {
	b := []byte("{\n")
	for _, x := range f.fields() {
		v, err := json.Marshal(x.value)
		if err != nil { // strings always marshal
			v = []byte(`""`)
		}
		b = fmt.Appendf(b, "  %q: %s,\n", x.name, v)
	}
	return fmt.Appendf(b, "  \"id\": %q\n}\n", f.ID().String())
}

// Validate reports all bad fields, each as a *ConfigError, joined.
func (f Fingerprint) Validate() error {
	var errs []error
	bad := func(field, value, allowed string) {
		errs = append(errs, &ConfigError{Field: "fingerprint." + field, Value: value, Allowed: allowed})
	}
	for _, x := range []field{{"Model", f.Model}, {"Revision", f.Revision}, {"DType", f.DType}} {
		if x.value == "" {
			bad(x.name, "empty", "any text that tells this one from others")
		}
	}
	if f.PageSize < 1 {
		bad("PageSize", strconv.Itoa(f.PageSize), "1 or more units")
	}
	if !f.Components.Has(tree.Full) || f.Components>>tree.NumComponents != 0 {
		bad("Components", f.Components.String(), "a set with full and any of swa and mamba")
	}
	if swa := f.Components.Has(tree.SWA); swa && f.Window < 1 {
		bad("Window", strconv.Itoa(f.Window), "1 or more units, since swa is among the components")
	} else if !swa && f.Window != 0 {
		bad("Window", strconv.Itoa(f.Window), "0, since swa is not among the components")
	}
	if f.Ranks < 1 {
		bad("Ranks", strconv.Itoa(f.Ranks), "1 or more")
	} else if f.Rank < 0 || f.Rank >= f.Ranks {
		bad("Rank", strconv.Itoa(f.Rank), fmt.Sprintf("0 to %d, since there are %d ranks", f.Ranks-1, f.Ranks))
	}
	return errors.Join(errs...)
}
