// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// reportFile is where a report goes: a file that is replaced as a whole when the
// report is written, so that a run that fails or is killed leaves what was there
// before. What cannot be replaced is written in place: pipes, devices, what is
// reached through them, and a file in a folder that takes no new ones.
type reportFile struct {
	path string      // of a file that is replaced, without links
	mode fs.FileMode // of the file there; 0: there is none
	file *os.File    // nil for a file that is replaced
}

// openReport finds out whether a report can be written to a file, before there is
// one. Nothing is left behind in the folder. The caller calls write or close.
func openReport(path string) (*reportFile, error) {
	real, replaceable, err := resolve(path)
	if err != nil {
		return nil, err
	}
	r := &reportFile{path: real}
	info, err := os.Stat(real)
	switch {
	case err == nil && (!replaceable || !info.Mode().IsRegular()):
		r.file, err = os.OpenFile(path, os.O_WRONLY, 0)
		return r, err
	case err == nil:
		// A rename would replace a file that nobody may write to.
		f, err := os.OpenFile(real, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		r.mode = info.Mode().Perm()
		if r.probe() != nil {
			r.file = f
			return r, nil
		}
		return r, f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return r, r.probe()
}

// resolve follows links to what a path names, which need not exist. Below /dev
// and /proc, where a link may stand for an open file, nothing is replaced.
func resolve(path string) (real string, replaceable bool, err error) {
	const links = 40 // as many as the system follows
	for range links {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", false, err
		}
		if folder, err = filepath.Abs(folder); err != nil {
			return "", false, err
		}
		if !os.IsPathSeparator(path[len(path)-1]) { // else it is a folder, and stays one
			path = filepath.Join(folder, filepath.Base(path))
		}
		if strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") {
			return path, false, nil
		}
		link, err := os.Readlink(path)
		if err != nil {
			return path, true, nil // it is no link, or not there
		}
		if !filepath.IsAbs(link) {
			link = folder + string(filepath.Separator) + link
		}
		path = link
	}
	return "", false, &fs.PathError{Op: "open", Path: path, Err: errors.New("too many links")}
}

// temporary makes a new file in the folder of the report.
func (r *reportFile) temporary() (*os.File, error) {
	for i := 0; ; i++ {
		name := filepath.Join(filepath.Dir(r.path), fmt.Sprintf(".treecore-%d-%d.tmp", os.Getpid(), i))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		var failed *fs.PathError
		if errors.As(err, &failed) {
			failed.Path = r.path // the name that the user knows
		}
		return f, err
	}
}

// probe tells whether a file can be made in the folder.
func (r *reportFile) probe() error {
	f, err := r.temporary()
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// close ends a report that is not to be written.
func (r *reportFile) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// write writes the report with a function. If that fails, a file that is replaced
// stays as it was.
func (r *reportFile) write(report func(io.Writer) error) error {
	if r.file != nil {
		if info, err := r.file.Stat(); err == nil && info.Mode().IsRegular() {
			if err := r.file.Truncate(0); err != nil {
				return errors.Join(err, r.file.Close())
			}
		}
		return errors.Join(report(r.file), r.file.Close())
	}
	f, err := r.temporary()
	if err != nil {
		return err
	}
	err = report(f)
	if err == nil && r.mode != 0 {
		err = f.Chmod(r.mode)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), r.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
