// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/treecore/treecore/storage"
)

// file writes a configuration file and returns the text that names it.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return "@" + path
}

func TestParseExtra(t *testing.T) {
	standard := Extra{PrefetchThreshold: 256, PrefetchTimeoutBase: time.Second, PrefetchTimeoutPerKiToken: 250 * time.Millisecond}
	all := Extra{PrefetchThreshold: 100, PrefetchTimeoutBase: 1500 * time.Millisecond, PrefetchTimeoutPerKiToken: 2 * time.Second, PassPrefixKeys: true}
	yaml := "# how\nprefetch_threshold: 100\nprefetch_timeout_base: 1.5\nprefetch_timeout_per_ki_token: 2\nhicache_storage_pass_prefix_keys: true\n"
	one := standard
	one.PrefetchThreshold = 7
	for _, c := range []struct {
		name, text string
		want       Extra
	}{
		{"nothing", "", standard},
		{"an empty object", " {} ", standard},
		{"all of them", `{"prefetch_threshold": 100, "prefetch_timeout_base": 1.5, "prefetch_timeout_per_ki_token": 2, "hicache_storage_pass_prefix_keys": true}`, all},
		{"zeros", `{"prefetch_threshold": 0, "prefetch_timeout_base": 0, "prefetch_timeout_per_ki_token": 0.0, "hicache_storage_pass_prefix_keys": false}`, Extra{}},
		{"the longest time", `{"prefetch_threshold": 0, "prefetch_timeout_base": 1e9, "prefetch_timeout_per_ki_token": 1e-9}`, Extra{PrefetchTimeoutBase: 1e9 * time.Second, PrefetchTimeoutPerKiToken: 1}},
		{"a JSON file", file(t, "a.json", `{"prefetch_threshold": 7}`), one},
		{"a TOML file", file(t, "a.toml", "prefetch_threshold = 100\nprefetch_timeout_base = 1.5\nprefetch_timeout_per_ki_token = 2\nhicache_storage_pass_prefix_keys = true\n"), all},
		{"an empty TOML file", file(t, "a.toml", "# nothing\n"), standard},
		{"a YAML file", file(t, "a.yaml", yaml), all},
		{"a file with a short name in capitals", file(t, "A.YML", yaml), all},
		{"YAML on one line", file(t, "a.yml", "{prefetch_threshold: 7}"), one},
		{"a YAML file of one key", file(t, "a.yml", "prefetch_threshold: 7"), one},
		{"an empty YAML file", file(t, "a.yml", ""), standard},
		{"a YAML file of a comment", file(t, "a.yml", "# nothing\n"), standard},
		{"YAML in hex", file(t, "a.yml", "prefetch_threshold: 0x7"), one},
	} {
		if got, err := ParseExtra(c.text); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v: wanted %+v", c.name, got, err, c.want)
		}
	}
}

// X-AT-3 for the extra configuration: each error names the field, the value and
// what is allowed.
func TestBadExtra(t *testing.T) {
	const (
		text    = "extra configuration"
		whole   = "a whole number of tokens from 0 to"
		seconds = "a number of seconds from 0 to 1000000000"
		bools   = "true or false"
	)
	for _, c := range []struct{ text, field, value, allowed string }{
		{`{"prefetch_threshold": "many"}`, keyThreshold, `"many"`, whole},
		{`{"prefetch_threshold": 1.5}`, keyThreshold, "1.5", whole},
		{`{"prefetch_threshold": 256.0}`, keyThreshold, "256.0", whole},
		{`{"prefetch_threshold": -1}`, keyThreshold, "-1", whole},
		{`{"prefetch_threshold": 1e999}`, keyThreshold, "1e999", whole},
		{`{"prefetch_threshold": 9223372036854775808}`, keyThreshold, "9223372036854775808", whole},
		{`{"prefetch_threshold": 2147483648}`, keyThreshold, "2147483648", whole},
		{`{"prefetch_threshold": true}`, keyThreshold, "true", whole},
		{`{"prefetch_threshold": null}`, keyThreshold, "null", whole},
		{`{"prefetch_threshold": 1, "prefetch_threshold": 2}`, keyThreshold, "given more than once", "one value"},
		{`{"prefetch_timeout_base": "1s"}`, keyBase, `"1s"`, seconds},
		{`{"prefetch_timeout_base": -0.001}`, keyBase, "-0.001", seconds},
		{`{"prefetch_timeout_base": 1e400}`, keyBase, "1e400", seconds},
		{`{"prefetch_timeout_base": 1000000001}`, keyBase, "1000000001", seconds},
		{`{"prefetch_timeout_per_ki_token": [1]}`, keyPerKiToken, "[1]", seconds},
		{`{"prefetch_timeout_per_ki_token": {"a": 1}}`, keyPerKiToken, `{"a": 1}`, seconds},
		{`{"prefetch_timeout_per_ki_token": false}`, keyPerKiToken, "false", seconds},
		{`{"hicache_storage_pass_prefix_keys": 1}`, keyPrefixKeys, "1", bools},
		{`{"hicache_storage_pass_prefix_keys": "true"}`, keyPrefixKeys, `"true"`, bools},
		{`{"prefetch_treshold": 1}`, `key "prefetch_treshold"`, "unknown", keyThreshold},
		{`{"Prefetch_Threshold": 1}`, `key "Prefetch_Threshold"`, "unknown", keyThreshold},
		{` `, text, "ends too early", "JSON object"},
		{`{"prefetch_threshold": 1`, text, "ends too early", "JSON object"},
		{`{"prefetch_threshold": }`, text, "byte", "JSON object"},
		{`{prefetch_threshold: 1}`, text, "byte", "JSON object"},
		{`{} {}`, text, "something follows", "JSON object"},
		{`[]`, text, "no object", "JSON object"},
		{`null`, text, "no object", "JSON object"},
		{`256`, text, "no object", "JSON object"},
		{file(t, "b.json", ""), text + " file", "ends too early", "JSON object"},
		{file(t, "b.json", "prefetch_threshold: 1"), text + " file", "byte 1", "JSON object"},
		{file(t, "b.toml", "prefetch_threshold = 1\nprefetch_threshold = 2\n"), text + " file", "line 2", "JSON object"},
		{file(t, "b.toml", "a = [\n"), text + " file", "line", "JSON object"},
		{file(t, "b.toml", "prefetch_threshold = 1.5\n"), keyThreshold, "1.5", whole},
		{file(t, "b.toml", "prefetch_timeout_base = inf\n"), keyBase, "+Inf", seconds},
		{file(t, "b.toml", "prefetch_timeout_base = nan\n"), keyBase, "NaN", seconds},
		{file(t, "b.toml", "prefetch_timeout_base = 1979-05-27\n"), keyBase, "1979-05-27", seconds},
		{file(t, "b.toml", "[prefetch_timeout_base]\na = 1\n"), keyBase, "a table", seconds},
		{file(t, "b.toml", "hicache_storage_pass_prefix_keys = \"yes\"\n"), keyPrefixKeys, `"yes"`, bools},
		{file(t, "b.yaml", "prefetch_threshold: 1\nprefetch_threshold: 2\n"), text + " file", "already defined", "JSON object"},
		{file(t, "b.yaml", "prefetch_threshold: [\n"), text + " file", "line 1", "JSON object"},
		{file(t, "b.yaml", "- 1\n"), text + " file", "no mapping", "JSON object"},
		{file(t, "b.yaml", "prefetch_threshold: 1\n---\nprefetch_threshold: 2\n"), text + " file", "more than one document", "JSON object"},
		{file(t, "b.yaml", "prefetch_threshold: 1.5\n"), keyThreshold, "1.5", whole},
		{file(t, "b.yaml", "prefetch_threshold: 18446744073709551615\n"), keyThreshold, "18446744073709551615", whole},
		{file(t, "b.yaml", "prefetch_threshold: '1'\n"), keyThreshold, `"1"`, whole},
		{file(t, "b.yaml", "prefetch_threshold:\n"), keyThreshold, "null", whole},
		{file(t, "b.yaml", "prefetch_timeout_base: .inf\n"), keyBase, ".inf", seconds},
		{file(t, "b.yaml", "prefetch_timeout_base: .nan\n"), keyBase, ".nan", seconds},
		{file(t, "b.yaml", "prefetch_timeout_base: {a: 1}\n"), keyBase, "a mapping", seconds},
		{file(t, "b.yaml", "prefetch_timeout_base: [1]\n"), keyBase, "a list", seconds},
		{file(t, "b.yaml", "prefetch_timeout_base: &x 1\nprefetch_timeout_per_ki_token: *x\n"), keyPerKiToken, "*x", seconds},
		{file(t, "b.yaml", "1: 1\n"), `key "1"`, "unknown", keyThreshold},
		{file(t, "b.txt", "{}"), text + " file", "b.txt", ".json, .toml, .yaml or .yml"},
		{file(t, "b.json", strings.Repeat(" ", maxFile+1)), text + " file", "it is longer", "at most 1 MiB"},
		{"@", text + " file", `""`, ".json, .toml, .yaml or .yml"},
		{"@/no/such/file.yaml", text + " file", "no such file", "a readable file"},
		{"@" + t.TempDir() + "/.json/", text + " file", ".json", ".yml"},
	} {
		got, err := ParseExtra(c.text)
		named := false
		for _, e := range leaves(t, err) {
			named = named || strings.HasPrefix(e.Field, c.field) && strings.Contains(e.Value, c.value) && strings.Contains(e.Allowed, c.allowed)
		}
		if !named || got != (Extra{}) {
			t.Errorf("%.200s: %+v, %v: wanted field %s, value %s, allowed %s", c.text, got, err, c.field, c.value, c.allowed)
		}
	}
}

// leaves returns the errors that were joined, all of which are for people.
func leaves(t interface{ Errorf(string, ...any) }, err error) []*storage.ConfigError {
	var out []*storage.ConfigError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, leaves(t, e)...)
		}
		return out
	}
	var e *storage.ConfigError
	if !errors.As(err, &e) || e.Field == "" || e.Value == "" || e.Allowed == "" || strings.Contains(e.Error(), "\n") || len(e.Error()) > 1000 {
		t.Errorf("%v (%T) is not a *storage.ConfigError in one line", err, err)
		return nil
	}
	return append(out, e)
}

// All that is wrong is said at once, always in the same order.
func TestEveryBadSettingIsNamed(t *testing.T) {
	want := []string{keyThreshold, keyBase, keyPerKiToken, keyPrefixKeys, `key "a"`, `key "b"`}
	for _, text := range []string{
		`{"b": 1, "hicache_storage_pass_prefix_keys": 0, "prefetch_timeout_per_ki_token": -1, "prefetch_timeout_base": -1, "prefetch_threshold": -1, "a": 1, "b": 2}`,
		file(t, "c.toml", "b = 1\na = 1\nprefetch_threshold = -1\nprefetch_timeout_base = -1\nhicache_storage_pass_prefix_keys = 0\nprefetch_timeout_per_ki_token = -1.0\n"),
		file(t, "c.yaml", "b: 1\na: 1\nprefetch_threshold: -1\nprefetch_timeout_base: -1\nhicache_storage_pass_prefix_keys: 0\nprefetch_timeout_per_ki_token: -1.0\n"),
	} {
		_, err := ParseExtra(text)
		var got []string
		for _, e := range leaves(t, err) {
			got = append(got, e.Field)
		}
		if strings.Join(got, ";") != strings.Join(want, ";") {
			t.Errorf("%s: named %q, wanted %q", text, got, want)
		}
	}
}

// A base or a share of 0 is none, and not the default of the storage tier.
func TestTimeout(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration // of 2048 tokens
	}{
		{"", 1500 * time.Millisecond},
		{`{"prefetch_timeout_base": 0}`, 500 * time.Millisecond},
		{`{"prefetch_timeout_base": 2, "prefetch_timeout_per_ki_token": 0}`, 2 * time.Second},
		{`{"prefetch_timeout_base": 0, "prefetch_timeout_per_ki_token": 0}`, 0},
	} {
		e, err := ParseExtra(c.text)
		if got := e.Timeout().For(2048); err != nil || got != c.want {
			t.Errorf("%s: %v for 2048 tokens, wanted %v (%v)", c.text, got, c.want, err)
		}
	}
}

// A threshold of 0 is everything, and not the default of the storage tier.
func TestThreshold(t *testing.T) {
	for text, want := range map[string]int{"": 256, `{"prefetch_threshold": 0}`: 1, `{"prefetch_threshold": 7}`: 7} {
		e, err := ParseExtra(text)
		if got := e.Threshold(); err != nil || got != want {
			t.Errorf("%s: %d, wanted %d (%v)", text, got, want, err)
		}
	}
}
