// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/treecore/treecore/internal/ops"
	"github.com/treecore/treecore/tree"
)

const inspectLong = `Rebuild a tree from an operation log and draw it. A log is what treecore replay
--op-log writes, or any program that records a core's calls; its first line
begins with "treecore-log 1".`

const inspectExample = `  treecore replay --op-log calls.log
  treecore inspect calls.log
  treecore inspect --check calls.log        # exit code 1 if the tree is not sound
  treecore inspect --transcript calls.log   # every call with what it returned`

func inspectCommand() *cobra.Command {
	var check, transcript bool
	c := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Draw the tree that an operation log leads to",
		Long:    inspectLong,
		Example: inspectExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("inspect takes one operation log, %d arguments are given: name a file, or - for standard input", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return inspect(c.OutOrStdout(), args[0], check, transcript)
		},
	}
	c.Flags().BoolVar(&check, "check", false, "check every invariant of the tree instead of drawing it")
	c.Flags().BoolVar(&transcript, "transcript", false, "print every call and what it returned before the tree")
	return c
}

func inspect(stdout io.Writer, path string, check, transcript bool) error {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("the operation log cannot be opened, check the path: %w", err)
		}
		defer f.Close()
		in = f
	}
	out := bufio.NewWriter(stdout)
	calls := io.Discard
	if transcript {
		calls = out
	}
	var core *tree.Core
	refused, err := ops.Replay(in, func(o tree.Options) (ops.Machine, error) {
		var err error
		core, err = tree.New(o)
		return core, err
	}, calls)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := draw(out, core, check, refused); err != nil {
		return errors.Join(&failure{fmt.Errorf("%s: %w", path, err)}, out.Flush())
	}
	if err := out.Flush(); err != nil {
		return &failure{err}
	}
	return nil
}

// draw draws the tree, or checks it.
func draw(w io.Writer, core *tree.Core, check bool, refused int) error {
	if !check {
		return core.Draw(w)
	}
	if err := core.SanityCheck(nil, nil); err != nil {
		return err
	}
	full, aux := core.TotalSize()
	_, err := fmt.Fprintf(w, "the tree is sound: %d nodes, %d full slots, %d slots of other components\n", core.NodeCount(), full, aux)
	if err == nil && refused > 0 {
		_, err = fmt.Fprintf(w, "but %d calls of the log were refused: see --transcript\n", refused)
	}
	return err
}
