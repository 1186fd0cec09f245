// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/treecore/treecore/storage"
	_ "github.com/treecore/treecore/storage/file"
	"github.com/treecore/treecore/storage/storagetest"
	"github.com/treecore/treecore/tree"
)

func TestBadURLsNameTheFieldAndTheRemedy(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ url, field, allowed string }{
		{"", "url", "file:DIR"},
		{"/var/cache", "url", "file:DIR"},
		{"nfs:/x", "scheme", "file"},
		{"file:", "folder", "file:/var/cache/treecore"},
		{"file:" + dir + "?size=lots", "size", "16GiB"},
		{"file:" + dir + "?size=10", "size", "at least 1048576 bytes"},
		{"file:" + dir + "?size=1GiB&size=2GiB", "size", "one value"},
		{"file:" + dir + "?sise=1GiB", "setting \"sise\"", "size"},
	} {
		_, err := storage.Open(context.Background(), c.url, storagetest.Fingerprint())
		var e *storage.ConfigError
		if !errors.As(err, &e) || e.Field != c.field || !strings.Contains(e.Allowed, c.allowed) {
			t.Errorf("%q: %v, wanted field %s and a remedy with %q", c.url, err, c.field, c.allowed)
		}
	}
}

// A path that is no folder and cannot become one is named with the remedy.
func TestAPathThatCannotBeAFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nothing"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below"), dangling, filepath.Join(dir, strings.Repeat("n", 300))} {
		_, err := storage.Open(context.Background(), "file:"+path, storagetest.Fingerprint())
		var e *storage.ConfigError
		if !errors.As(err, &e) || e.Field != "folder" || !strings.Contains(e.Value, path) || !strings.Contains(e.Allowed, "folder") {
			t.Errorf("%.80s: %v", path, err)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("the file holds %q: %v", b, err)
	}
}

// Every kind of a backend's errors says what to do; those of a stored page are
// misses, which nobody has to do anything about.
func TestEveryFailureHasARemedy(t *testing.T) {
	for k := storage.Unreachable; k < storage.NumKinds; k++ {
		e := &storage.Error{Backend: "x", Op: "open", Kind: k}
		if k == storage.Cancelled {
			continue // the caller's own doing
		}
		if !strings.HasPrefix(e.Error(), "storage x: open: "+k.String()+": ") {
			t.Errorf("%v has no remedy: %s", k, e)
		}
	}
}

func TestBadFingerprintsNameEveryField(t *testing.T) {
	_, err := storage.Open(context.Background(), "file:"+t.TempDir(), storage.Fingerprint{Components: tree.SetOf(tree.SWA), Window: -1})
	for _, field := range []string{"Model", "Revision", "DType", "PageSize", "Components", "Window", "Ranks"} {
		if err == nil || !strings.Contains(err.Error(), "fingerprint."+field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	f := storagetest.Fingerprint()
	f.Rank = 2
	var e *storage.ConfigError
	if err := f.Validate(); !errors.As(err, &e) || e.Field != "fingerprint.Rank" {
		t.Errorf("rank 2 of 2: %v", err)
	}
}

func TestFingerprintIDsDiffer(t *testing.T) {
	f := storagetest.Fingerprint()
	for _, v := range storagetest.Variants(f) {
		if v.Fingerprint.ID() == f.ID() {
			t.Errorf("%s differs, and the id does not", v.Name)
		}
		if err := v.Fingerprint.Validate(); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// Case C-017: every field of a fingerprint is in its id and has a variant, so
// that the contract opens each backend with it.
func TestC017VariantsNameEveryField(t *testing.T) {
	f := storagetest.Fingerprint()
	fields := reflect.TypeFor[storage.Fingerprint]()
	for i := range fields.NumField() {
		alone := slices.ContainsFunc(storagetest.Variants(f), func(v storagetest.Variant) bool {
			for j := range fields.NumField() {
				same := reflect.ValueOf(f).Field(j).Interface() == reflect.ValueOf(v.Fingerprint).Field(j).Interface()
				if same == (i == j) {
					return false
				}
			}
			return true
		})
		if !alone {
			t.Errorf("no variant differs in %s alone", fields.Field(i).Name)
		}
	}
}

// A nil opener neither breaks Open nor takes a scheme away.
func TestRegisterIgnoresNil(t *testing.T) {
	storage.Register("nobody", nil)
	storage.Register("file", nil)
	var e *storage.ConfigError
	_, err := storage.Open(context.Background(), "nobody:x", storagetest.Fingerprint())
	if !errors.As(err, &e) || e.Field != "scheme" || strings.Contains(e.Allowed, "nobody") {
		t.Errorf("a scheme without an opener: %v", err)
	}
	s, err := storage.Open(context.Background(), "file:"+t.TempDir(), storagetest.Fingerprint())
	if err != nil {
		t.Fatalf("the scheme that was there before: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
