// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package file

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/treecore/treecore/storage"
)

// lockFolder takes the folder's lock, which the kernel gives free when the
// process ends, however it ends. Readers share it. Without a lock file a folder
// that cannot be written has no writer, and the result is nil.
func lockFolder(dir string, write bool) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	mode, how := os.O_RDWR|os.O_CREATE, syscall.LOCK_EX
	if !write {
		mode, how = os.O_RDONLY, syscall.LOCK_SH
	}
	f, err := os.OpenFile(path, mode, 0o644)
	if errors.Is(err, os.ErrNotExist) && !write {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		defer func() { _ = f.Close() }()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, err
		}
		b, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return nil, &storage.LockedError{Dir: dir, PID: pid}
	}
	if write {
		// Only for the message of the next one that wants it.
		_ = f.Truncate(0)
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}
