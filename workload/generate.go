// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// maxGenerated is the most requests a generator makes.
const maxGenerated = 1 << 24

// Range is a choice of whole numbers, Min to Max, each as likely as the others.
type Range struct{ Min, Max int }

// Span is a choice of durations, Min to Max, evenly.
type Span struct{ Min, Max time.Duration }

func (r Range) String() string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d..%d", r.Min, r.Max)
}

func (s Span) String() string {
	if s.Min == s.Max {
		return s.Min.String()
	}
	return s.Min.String() + ".." + s.Max.String()
}

func (r Range) pick(random *rand.Rand) int {
	return r.Min + random.IntN(r.Max-r.Min+1)
}

func (s Span) pick(random *rand.Rand) time.Duration {
	return s.Min + time.Duration(random.Int64N(int64(s.Max-s.Min)+1))
}

func (p *problems) checkRange(name string, r Range, least, most int) {
	if r.Min < least || r.Max > most || r.Min > r.Max {
		p.add("%s is %v, must be a range within %d..%d", name, r, least, most)
	}
}

func (p *problems) checkSpan(name string, s Span) {
	if s.Min < 0 || s.Max > MaxTime || s.Min > s.Max {
		p.add("%s is %v, must be a range within 0..%v", name, s, MaxTime)
	}
}

func (p *problems) checkChance(name string, chance float64) {
	if !(chance >= 0 && chance <= 1) {
		p.add("%s is %v, must be from 0 to 1", name, chance)
	}
}

// generator is one that Generate knows.
type generator struct {
	name     string
	defaults func() (settings []setting, run func() (*Workload, error))
}

// setting is a parameter by its name; value points to it.
type setting struct {
	name  string
	value any
}

func generators() []generator {
	return []generator{
		{"agents", func() ([]setting, func() (*Workload, error)) {
			p := DefaultAgents()
			return p.settings(), func() (*Workload, error) { return Agents(p) }
		}},
		{"random-tree", func() ([]setting, func() (*Workload, error)) {
			p := DefaultRandomTree()
			return p.settings(), func() (*Workload, error) { return RandomTree(p) }
		}},
		{"shared-prefix", func() ([]setting, func() (*Workload, error)) {
			p := DefaultSharedPrefix()
			return p.settings(), func() (*Workload, error) { return SharedPrefix(p) }
		}},
	}
}

// Generators gives the names that Generate knows, sorted.
func Generators() []string {
	var names []string
	for _, g := range generators() {
		names = append(names, g.name)
	}
	return names
}

// Settings gives the parameters of a generator with their defaults, each as
// "name=value", in the form that Generate takes; nil for an unknown generator.
func Settings(name string) []string {
	for _, g := range generators() {
		if g.name == name {
			settings, _ := g.defaults()
			var list []string
			for _, s := range settings {
				list = append(list, s.name+"="+s.text())
			}
			return list
		}
	}
	return nil
}

// Generate makes a workload by the generator's name. Each setting is
// "name=value" as in Settings and replaces a default: numbers, "true" or
// "false", durations as "1.5s", ranges as "64" or "1..256". All wrong settings
// are reported in one error.
func Generate(name string, settings ...string) (*Workload, error) {
	for _, g := range generators() {
		if g.name != name {
			continue
		}
		known, run := g.defaults()
		var p problems
		for _, text := range settings {
			if err := apply(known, text); err != nil {
				p = append(p, err.Error())
			}
		}
		if err := p.err("workload " + name); err != nil {
			return nil, err
		}
		return run()
	}
	return nil, fmt.Errorf("workload %s is not known; known are %s", clip([]byte(name)), strings.Join(Generators(), ", "))
}

func apply(settings []setting, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("setting %s is not of the form name=value", clip([]byte(text)))
	}
	var names []string
	for _, s := range settings {
		if s.name == name {
			return s.set(value)
		}
		names = append(names, s.name)
	}
	return fmt.Errorf("setting %s is not known; known are %s", clip([]byte(name)), strings.Join(names, ", "))
}

func (s setting) text() string {
	switch v := s.value.(type) {
	case *int:
		return strconv.Itoa(*v)
	case *uint64:
		return strconv.FormatUint(*v, 10)
	case *float64:
		return strconv.FormatFloat(*v, 'g', -1, 64)
	case *bool:
		return strconv.FormatBool(*v)
	}
	return fmt.Sprint(s.value)
}

func (s setting) set(text string) error {
	var err error
	want := ""
	switch v := s.value.(type) {
	case *int:
		*v, err = strconv.Atoi(text)
		want = "a whole number"
	case *uint64:
		*v, err = strconv.ParseUint(text, 10, 64)
		want = "a whole number that is not negative"
	case *float64:
		*v, err = strconv.ParseFloat(text, 64)
		want = "a number"
	case *bool:
		*v, err = strconv.ParseBool(text)
		want = "true or false"
	case *Range:
		low, high := ends(text)
		if v.Min, err = strconv.Atoi(low); err == nil {
			v.Max, err = strconv.Atoi(high)
		}
		want = "a whole number, or a range as 1..256"
	case *Span:
		low, high := ends(text)
		if v.Min, err = time.ParseDuration(low); err == nil {
			v.Max, err = time.ParseDuration(high)
		}
		want = "a duration as 1.5s, or a range as 1s..2s"
	}
	if err != nil {
		return fmt.Errorf("setting %s is %s, must be %s", s.name, clip([]byte(text)), want)
	}
	return nil
}

// ends splits "low..high"; a single value is both.
func ends(text string) (low, high string) {
	if low, high, ok := strings.Cut(text, ".."); ok {
		return low, high
	}
	return text, text
}

// fresh gives a head for a run of a generated prompt. Generators make fewer runs
// than there are heads: a few a request.
func (b *builder) fresh() uint32 {
	head, _ := b.ids.fresh()
	return head
}
