// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/treecore/treecore/model"
	"github.com/treecore/treecore/server"
	"github.com/treecore/treecore/storage"
	_ "github.com/treecore/treecore/storage/all"
	"github.com/treecore/treecore/tree"
)

const (
	defaultServed = "hybrid-3way"
	defaultAddr   = "127.0.0.1:8080"
	// keyVariable holds the API key where --api-key would show it to all who list
	// processes.
	keyVariable = "TREECORE_API_KEY"
)

const serveLong = `Serve the reference engine over HTTP: SGLang's /generate, OpenAI's completions and
chat completions, metrics for Prometheus, and a view of what is cached. Every
answer says how many tokens of its prompt were reused, from which tier, and why it
was not more.

The engine computes on what the cache keeps, and has learned nothing: what it says
means nothing, and is the same whether the cache is warm or cold. Tokens are bytes:
the ids 0 to 255, and 256 for the end of a text.

An interrupt (SIGINT, SIGTERM) ends the server when what runs has ended, or after
--drain-timeout.`

const serveExample = `  treecore serve
  curl -s http://127.0.0.1:8080/generate -d '{"text": "Hello", "sampling_params": {"max_new_tokens": 8}}'

  # another model, pages of 16 tokens, no host tier
  treecore serve --model gpt-oss-20b --page-size 16 --host-tokens 0

  # with a store on disk
  treecore serve --storage file:/var/tmp/treecore`

// serveFlags are the flags of the command serve.
type serveFlags struct {
	addr string
	engineFlags
	attach server.Attach
	apiKey string
	body   string
	o      server.Options
}

func serveCommand() *cobra.Command {
	s := &serveFlags{}
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the reference engine over HTTP",
		Long:    serveLong,
		Example: serveExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q: serve takes flags only", args[0])
			}
			return nil
		},
		RunE: s.run,
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&s.addr, "addr", defaultAddr, "address to listen on, as HOST:PORT; port 0 takes a free one")
	s.engineFlags.add(f)
	s.addStorage(f)
	f.StringVar(&s.apiKey, "api-key", "", "key that calls must send as a bearer token, but for /health and /metrics (default: that of "+keyVariable+", else none)")
	f.StringVar(&s.body, "max-body", model.FormatSize(server.DefaultMaxBody), "largest body of a call")
	f.IntVar(&s.o.MaxPrompt, "max-prompt-tokens", 0, "longest prompt (default: what the device holds)")
	f.IntVar(&s.o.MaxQueue, "max-queue", server.DefaultMaxQueue, "most requests that wait; others are told to come again")
	f.IntVar(&s.o.MaxParallel, "max-parallel", server.DefaultMaxParallel, "most prompts and outputs that one call asks for")
	f.DurationVar(&s.o.DrainTimeout, "drain-timeout", server.DefaultDrainTimeout, "time that calls have to end when the server is told to")
	f.DurationVar(&s.o.SlowClient, "slow-client", server.DefaultSlowClient, "time that a client may take to send a body, or to take a piece of an answer")
	return c
}

func (s *serveFlags) addStorage(f *pflag.FlagSet) {
	f.StringVar(&s.attach.URL, "storage", "", "store below the host: file:DIR, redis://HOST:PORT/DB or s3://BUCKET/PREFIX (default: none)")
	f.StringVar(&s.attach.PrefetchPolicy, "prefetch-policy", "best-effort", "how long requests wait for what is fetched from the store: best-effort, wait-complete or timeout")
	f.StringVar(&s.attach.Extra, "storage-extra", "", "further settings of the store: a JSON object, or @FILE (JSON, TOML or YAML)")
}

func (s *serveFlags) run(c *cobra.Command, _ []string) error {
	if err := s.check(c.Flags()); err != nil {
		return err
	}
	e, about, err := s.engineFlags.open(c.Flags())
	if err != nil {
		return err
	}
	s.o.Engine, s.o.Model, s.o.Info = e, about.profile.Name, about.info
	s.o.TokenLimit, s.o.Fingerprint = about.tokenLimit, about.fingerprint
	s.o.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
	srv, err := server.New(s.o)
	if err != nil {
		e.Close()
		return err
	}
	if s.attach.URL != "" {
		if err := srv.AttachStorage(c.Context(), s.attach); err != nil {
			return errors.Join(s.storageError(err), srv.Close())
		}
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return errors.Join(&failure{fmt.Errorf("--addr %s: nothing can listen there, name another address: %w", s.addr, err)}, srv.Close())
	}
	s.greet(c.OutOrStdout(), c.ErrOrStderr(), l.Addr(), about)
	if err := srv.Serve(c.Context(), l); err != nil {
		return &failure{err}
	}
	return nil
}

// check finds what is wrong with the flags of the server itself.
func (s *serveFlags) check(f *pflag.FlagSet) error {
	for _, name := range []string{"max-prompt-tokens", "max-queue", "max-parallel", "drain-timeout", "slow-client"} {
		if x := f.Lookup(name); x.Changed && (strings.Trim(x.Value.String(), "0ns") == "" || strings.HasPrefix(x.Value.String(), "-")) {
			return fmt.Errorf("--%s is %s: must be more than 0", name, x.Value)
		}
	}
	_, port, err := net.SplitHostPort(s.addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--addr is %q: must be HOST:PORT, as %s", s.addr, defaultAddr)
	}
	bytes, err := model.ParseSize(s.body)
	if err != nil || bytes > 1<<32 {
		return fmt.Errorf("--max-body is %q: must be an amount up to 4GiB, as 32MiB", s.body)
	}
	s.o.MaxBody = bytes
	if s.o.APIKey = s.apiKey; !f.Changed("api-key") {
		s.o.APIKey = os.Getenv(keyVariable)
	} else if s.apiKey == "" {
		return errors.New("--api-key is empty: give a key, or leave the flag out")
	}
	if s.attach.URL == "" {
		for _, name := range []string{"storage", "prefetch-policy", "storage-extra"} {
			if f.Changed(name) {
				return fmt.Errorf("--%s without a store: give --storage URL, or leave the flag out", name)
			}
		}
	}
	return nil
}

// storageError tells wrong settings from a store that does not work.
func (s *serveFlags) storageError(err error) error {
	var config *storage.ConfigError
	var option *tree.ConfigError
	err = fmt.Errorf("--storage: %w", err)
	if errors.As(err, &config) || errors.As(err, &option) {
		return err
	}
	return &failure{err}
}

// greet says where the server is and what it serves.
func (s *serveFlags) greet(out, warn io.Writer, at net.Addr, a about) {
	fmt.Fprintf(out, "serving http://%s: model %s, engine %s, %s\n", at, a.profile.Name, a.engine, a.sizes)
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && s.o.APIKey == "" {
		fmt.Fprintf(warn, "treecore: anybody who reaches %s can use and change this server, also attach stores: give --api-key or %s\n", at, keyVariable)
	}
}
