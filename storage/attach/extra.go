// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/treecore/treecore/storage"
	"github.com/treecore/treecore/storage/queue"
)

// Extra is the extra configuration of an attachment (rule AT-5). Its zero value
// prefetches everything and waits for nothing; DefaultExtra has the defaults.
type Extra struct {
	// PrefetchThreshold is the least number of tokens that are worth a
	// prefetch. A page is at least needed. See Threshold.
	PrefetchThreshold int
	// A prefetch under the policy Timeout may take PrefetchTimeoutBase, and
	// PrefetchTimeoutPerKiToken for each 1024 tokens; see Timeout.
	PrefetchTimeoutBase, PrefetchTimeoutPerKiToken time.Duration
	// PassPrefixKeys asks to give the backend the keys of a page's ancestors, too.
	// It is read, so that a configuration made for other backends is taken; the
	// stores here find a page by its own key alone and have no use for them.
	PassPrefixKeys bool
}

// DefaultExtra returns the settings of an empty configuration: 256 tokens, 1s,
// 250ms, and no prefix keys.
func DefaultExtra() Extra {
	return Extra{PrefetchThreshold: 256, PrefetchTimeoutBase: time.Second, PrefetchTimeoutPerKiToken: 250 * time.Millisecond}
}

// Threshold returns the threshold in the form that a storage tier takes, where
// nothing stands for the default and not for everything.
func (e Extra) Threshold() int { return max(1, e.PrefetchThreshold) }

// Timeout returns the timeout in the form that a storage tier takes.
func (e Extra) Timeout() queue.Timeout {
	t := queue.Timeout{Base: e.PrefetchTimeoutBase, PerKiToken: e.PrefetchTimeoutPerKiToken}
	if t.Base == 0 {
		t.Base = -1 // none, and not the default
	}
	if t.PerKiToken == 0 {
		t.PerKiToken = -1
	}
	return t
}

// The keys of a configuration, in the order in which their errors are reported.
const (
	keyThreshold  = "prefetch_threshold"
	keyBase       = "prefetch_timeout_base"
	keyPerKiToken = "prefetch_timeout_per_ki_token"
	keyPrefixKeys = "hicache_storage_pass_prefix_keys"
)

var keys = []string{keyThreshold, keyBase, keyPerKiToken, keyPrefixKeys}

const (
	maxFile    = 1 << 20
	maxSeconds = 1e9 // thirty years, and far from what a Duration can hold
)

// ParseExtra reads an extra configuration: a JSON object, or @ and the path of a
// file that ends in .json, .toml, .yaml or .yml and holds the same keys. Keys
// that are not given have their defaults; an empty text gives them all.
//
//	prefetch_threshold                a whole number of tokens
//	prefetch_timeout_base             a number of seconds
//	prefetch_timeout_per_ki_token     a number of seconds
//	hicache_storage_pass_prefix_keys  true or false
//
// A text or file that cannot be read, an unknown key, one that is given twice,
// and a value of a wrong type or out of range are a *storage.ConfigError each,
// joined; the Extra is then the zero value.
func ParseExtra(text string) (Extra, error) {
	if text == "" {
		return DefaultExtra(), nil
	}
	path, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return parse(readJSON, "extra configuration", []byte(text))
	}
	const field = "extra configuration file"
	read := readers[strings.ToLower(filepath.Ext(path))]
	if read == nil {
		return Extra{}, &storage.ConfigError{Field: field, Value: quoted(path), Allowed: "a path that ends in .json, .toml, .yaml or .yml"}
	}
	b, err := readFile(path)
	if err != nil {
		return Extra{}, &storage.ConfigError{Field: field, Value: quoted(path) + ", which cannot be read (" + err.Error() + ")", Allowed: "a readable file of at most 1 MiB"}
	}
	return parse(read, field+" "+quoted(path), b)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, reason(err)
	}
	if len(b) > maxFile {
		return nil, errors.New("it is longer")
	}
	return b, nil
}

// reason leaves out the path, which the message has already.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// setting is one key of a configuration and what was given for it.
type setting struct {
	key   string
	value any    // int64, float64 or bool; anything else is of no use to anybody
	shown string // the value as it was written
}

// reader reads the settings of one format. An error is a sentence for people.
type reader func(b []byte) ([]setting, error)

var readers = map[string]reader{".json": readJSON, ".toml": readTOML, ".yaml": readYAML, ".yml": readYAML}

// parse reads a text and checks it; field names it in messages.
func parse(read reader, field string, b []byte) (Extra, error) {
	given, err := read(b)
	if err != nil {
		return Extra{}, &storage.ConfigError{Field: field, Value: "not readable: " + short(err.Error()), Allowed: "keys and values, as in the JSON object {\"" + keyThreshold + "\": 256}"}
	}
	c := checker{given: given}
	e := DefaultExtra()
	e.PrefetchThreshold = c.integer(keyThreshold, e.PrefetchThreshold)
	e.PrefetchTimeoutBase = c.seconds(keyBase, e.PrefetchTimeoutBase)
	e.PrefetchTimeoutPerKiToken = c.seconds(keyPerKiToken, e.PrefetchTimeoutPerKiToken)
	e.PassPrefixKeys = c.boolean(keyPrefixKeys, e.PassPrefixKeys)
	if err := c.err(); err != nil {
		return Extra{}, err
	}
	return e, nil
}

// checker takes settings by key and collects what is wrong with them.
type checker struct {
	given []setting
	errs  []error
}

func (c *checker) bad(field, value, allowed string) {
	c.errs = append(c.errs, &storage.ConfigError{Field: field, Value: value, Allowed: allowed})
}

// find returns the setting of a key, or nil if it is not given.
func (c *checker) find(key string) *setting {
	var found *setting
	for i := range c.given {
		if c.given[i].key != key {
			continue
		}
		if found != nil {
			c.bad(key, "given more than once", "one value")
			break
		}
		found = &c.given[i]
	}
	return found
}

func (c *checker) integer(key string, otherwise int) int {
	s := c.find(key)
	if s == nil {
		return otherwise
	}
	n, ok := s.value.(int64)
	if !ok || n < 0 || n > math.MaxInt32 {
		c.bad(key, s.shown, fmt.Sprintf("a whole number of tokens from 0 to %d", math.MaxInt32))
	}
	return int(n)
}

func (c *checker) seconds(key string, otherwise time.Duration) time.Duration {
	s := c.find(key)
	if s == nil {
		return otherwise
	}
	n, ok := s.value.(float64)
	if whole, is := s.value.(int64); is {
		n, ok = float64(whole), true
	}
	if !ok || !(n >= 0 && n <= maxSeconds) { // not a number is not in the range, either
		c.bad(key, s.shown, fmt.Sprintf("a number of seconds from 0 to %.0f", maxSeconds))
		return 0
	}
	return time.Duration(math.Round(n * float64(time.Second)))
}

func (c *checker) boolean(key string, otherwise bool) bool {
	s := c.find(key)
	if s == nil {
		return otherwise
	}
	b, ok := s.value.(bool)
	if !ok {
		c.bad(key, s.shown, "true or false")
	}
	return b
}

// err returns all that was wrong, unknown keys last and each once.
func (c *checker) err() error {
	var unknown []string
	for _, s := range c.given {
		if !slices.Contains(keys, s.key) {
			unknown = append(unknown, s.key)
		}
	}
	slices.Sort(unknown)
	for _, key := range slices.Compact(unknown) {
		c.bad("key "+quoted(key), "unknown", "one of "+strings.Join(keys, ", "))
	}
	return errors.Join(c.errs...)
}

// quoted puts a text that somebody gave into a message, in one line and not all
// of it if it is long.
func quoted(s string) string { return strconv.Quote(short(s)) }

func short(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
