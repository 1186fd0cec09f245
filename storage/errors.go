// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// The errors below stand in the order in which a caller can meet them.

// ConfigError reports a bad setting: of the URL, of a fingerprint or of a
// backend's options. Nothing was opened.
type ConfigError struct {
	Field   string // the setting, in the words of the URL or the struct
	Value   string // what was given
	Allowed string // what is allowed
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("storage: %s is %s: allowed is %s", e.Field, e.Value, e.Allowed)
}

// LockedError says that another process, or another store of this one, has the
// folder open.
type LockedError struct {
	Dir string
	PID int // the process that holds it; 0 if unknown
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("storage: folder %s is in use by %s: give each engine a folder of its own, or share pages through redis or s3", e.Dir, who)
}

// KeyError reports arguments that cannot be right. Nothing was done.
type KeyError struct {
	Key     string // the key, if it is about one
	Problem string
}

func (e *KeyError) Error() string {
	if e.Key == "" {
		return "storage: " + e.Problem
	}
	return fmt.Sprintf("storage: key %s: %s", e.Key, e.Problem)
}

// Kind tells apart why a page was not read or written. Counters are kept by it.
type Kind uint8

// The kinds. The first five are about a stored page, which then is a miss; the
// others are about the backend.
const (
	Torn        Kind = iota // shorter than its frame says, or no whole frame
	Checksum                // altered
	Foreign                 // of another fingerprint or key
	WrongLength             // whole and right, but not of the length asked for
	Unreadable              // in a frame of an unknown version
	Unreachable             // I/O error, connection refused or lost
	TimedOut                // a deadline of the backend or the context passed
	Cancelled               // the context was cancelled
	NoSpace                 // disk or memory of the backend is full
	ReadOnly                // the backend takes no writes
	Denied                  // wrong credentials or missing rights
	TooLarge                // the page is larger than the backend takes
	Closed                  // the store was closed
	Other                   // any other answer

	NumKinds = 14 // the number of kinds
)

var kindNames = [NumKinds]string{
	"torn", "checksum", "foreign", "wrong-length", "unreadable", "unreachable", "timed-out",
	"cancelled", "no-space", "read-only", "denied", "too-large", "closed", "other",
}

// String returns the lower-case name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

var remedies = [NumKinds]string{
	Unreachable: "check that the backend runs and its address and disk are right",
	TimedOut:    "raise the timeout or look why the backend is slow",
	NoSpace:     "free room or lower the size cap",
	ReadOnly:    "make it writable or serve it for reading only",
	Denied:      "check the credentials and rights",
	TooLarge:    "raise the size cap or use smaller pages",
	Closed:      "open it again",
	Other:       "put right what the backend's answer names",
}

// Error is a failure of the backend. Answers for keys that were served before
// it are valid; the others count as misses or failed writes (rule ST-10).
type Error struct {
	Backend string // file, redis, s3
	Op      string // exists, get, put, delete, clear, open
	Kind    Kind
	Where   string // the folder, file, host or bucket; may be empty
	Err     error  // the backend's own error; may be nil
}

func (e *Error) Error() string {
	s := fmt.Sprintf("storage %s: %s: %s", e.Backend, e.Op, e.Kind)
	if e.Where != "" {
		s += ": " + e.Where
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if int(e.Kind) < len(remedies) && remedies[e.Kind] != "" {
		s += ": " + remedies[e.Kind]
	}
	return s
}

// Unwrap returns the backend's own error.
func (e *Error) Unwrap() error { return e.Err }

// KindOf tells the kind of an error of the operating system, of a connection or
// of a context. Backends look at their own errors first.
func KindOf(err error) Kind {
	var own *Error
	var timeout net.Error
	var network *net.OpError
	switch {
	case errors.As(err, &own):
		return own.Kind
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return NoSpace
	case errors.Is(err, syscall.EROFS):
		return ReadOnly
	case errors.Is(err, fs.ErrPermission):
		return Denied
	case errors.Is(err, fs.ErrClosed):
		return Closed
	case errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	case errors.As(err, &network), errors.Is(err, syscall.EIO), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return Unreachable
	}
	return Other
}
