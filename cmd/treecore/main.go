// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Command treecore replays request traces through a prefix cache and looks into
// recorded trees. See "treecore help".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // the run failed
	exitUsage  = 2 // the command line or an input file is wrong
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first interrupt asks for an end; from then on one ends the process.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands lists the commands; one line registers one.
func commands() []*cobra.Command {
	return []*cobra.Command{
		replayCommand(),
		scenarioCommand(),
		benchCommand(),
		serveCommand(),
		inspectCommand(),
		versionCommand(),
	}
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "treecore",
		Short: "A prefix cache for hybrid models: replay traffic, plan memory, look inside",
		Long: `Treecore is one radix tree for all cached state of a hybrid model: full
attention, sliding windows and recurrent states. This command replays traffic
through it and says what a given amount of memory brings.

Exit codes: 0 done, 1 the run failed, 2 the command line or an input file is
wrong.`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(commands()...)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
	})
	root.SetArgs(joinJSON(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(stderr, "treecore: "+oneLine(err))
	var failed *failure
	if errors.As(err, &failed) {
		return exitFailed
	}
	return exitUsage
}

// joinJSON makes one word of --json and the file directly behind it, since the
// flag's value is optional. Anything else that stands alone stays a mistake.
func joinJSON(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--json" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			out = append(out, "--json="+args[i+1])
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// failure marks the error of a run that began with sound input. All other errors
// are about the command line or an input file.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// oneLine puts joined errors in one line.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
