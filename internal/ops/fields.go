// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"strconv"

	"github.com/treecore/treecore/tree"
)

const defaultThreshold = 256 // of Switches.WriteThroughThreshold

// handleKind says how a field names nodes; scripts put names there.
type handleKind uint8

const (
	noHandle handleKind = iota
	nodeHandle
	nodesHandle
	receiptHandle
	inFlightHandle
	transfersHandle // one transfer or several
)

// fieldSpec describes one field of a verb.
type fieldSpec struct {
	name     string
	flag     bool
	optional bool
	handle   handleKind
	parse    func(c *Call, value string) error
	// format returns the value; write is false for an optional field that has
	// its default.
	format func(c *Call) (value string, write bool)
}

// field builds a spec from a place in the call and the two directions.
func field[T any](name string, place func(*Call) *T, parse func(string) (T, error), format func(T) string) fieldSpec {
	return fieldSpec{
		name: name,
		parse: func(c *Call, value string) error {
			v, err := parse(value)
			if err == nil {
				*place(c) = v
			}
			return err
		},
		format: func(c *Call) (string, bool) { return format(*place(c)), true },
	}
}

// unless makes a field optional: it is not written while isDefault.
func (f fieldSpec) unless(isDefault func(*Call) bool) fieldSpec {
	write := f.format
	f.optional = true
	f.format = func(c *Call) (string, bool) {
		if isDefault(c) {
			return "", false
		}
		return write(c)
	}
	return f
}

func (f fieldSpec) as(k handleKind) fieldSpec {
	f.handle = k
	return f
}

func flag(name string, place func(*Call) *bool) fieldSpec {
	return fieldSpec{
		name: name, flag: true, optional: true,
		parse:  func(c *Call, _ string) error { *place(c) = true; return nil },
		format: func(c *Call) (string, bool) { return "", *place(c) },
	}
}

func optionalInt(name string, place func(*Call) *int) fieldSpec {
	return field(name, place, parseInt, strconv.Itoa).unless(func(c *Call) bool { return *place(c) == 0 })
}

func optionalSlots(name string, place func(*Call) *tree.Slots) fieldSpec {
	return field(name, place, parseSlots, formatSlots).unless(func(c *Call) bool { return *place(c) == nil })
}

func formatInt64(v int64) string       { return strconv.FormatInt(v, 10) }
func formatNode(id tree.NodeID) string { return strconv.FormatInt(int64(id), 10) }

func nodePlace(c *Call) *tree.NodeID { return &c.Node }

var (
	nodeField      = field("node", nodePlace, parseNode, formatNode).as(nodeHandle)
	fromField      = field("from", nodePlace, parseNode, formatNode).as(nodeHandle)
	untilField     = field("until", func(c *Call) *tree.NodeID { return &c.Until }, parseNode, formatNode).as(nodeHandle)
	nodesField     = field("nodes", func(c *Call) *[]tree.NodeID { return &c.Nodes }, parseNodes, formatNodes).as(nodesHandle)
	componentField = field("component", func(c *Call) *tree.Component { return &c.Component }, parseComponent, tree.Component.String)
	receiptField   = field("receipt", func(c *Call) *tree.Receipt { return &c.Receipt }, parseReceipt, formatReceipt).as(receiptHandle)
	slotsField     = optionalSlots("slots", func(c *Call) *tree.Slots { return &c.Slots })
	startField     = field("start", func(c *Call) *int { return &c.Start }, parseInt, strconv.Itoa)
	endField       = field("end", func(c *Call) *int { return &c.End }, parseInt, strconv.Itoa)
	nField         = field("n", func(c *Call) *int { return &c.N }, parseInt, strconv.Itoa)
	totalsField    = field("totals", func(c *Call) *tree.Units { return &c.Totals }, parseUnits, formatUnits)
	idField        = field("id", func(c *Call) *string { return &c.ID }, parseString, strconv.Quote)
	generation     = field("generation", func(c *Call) *int64 { return &c.Generation }, parseInt64, formatInt64)

	skipField = field("skip", func(c *Call) *tree.ComponentSet { return &c.Skip }, parseSet, tree.ComponentSet.String).
			unless(func(c *Call) bool { return c.Skip == 0 })
	skipSWAField   = flag("skip-swa", func(c *Call) *bool { return &c.SkipSWA })
	writeBackField = flag("write-back", func(c *Call) *bool { return &c.WriteBack })
	hostField      = flag("host", func(c *Call) *bool { return &c.Host })
)

// keyFields are the four fields of a key.
var keyFields = []fieldSpec{
	field("tokens", func(c *Call) *[]tree.Token { return &c.Key.Tokens }, parseTokens, formatTokens),
	{
		name: "extra", optional: true,
		parse: func(c *Call, value string) error {
			v, err := parseString(value)
			c.Key.Namespace.ExtraKey, c.Key.Namespace.HasExtraKey = v, true
			return err
		},
		format: func(c *Call) (string, bool) {
			n := c.Key.Namespace
			return strconv.Quote(n.ExtraKey), n.HasExtraKey || n.ExtraKey != ""
		},
	},
	{
		name: "salt", optional: true,
		parse: func(c *Call, value string) error {
			v, err := parseString(value)
			c.Key.Namespace.Salt = v
			return err
		},
		format: func(c *Call) (string, bool) {
			return strconv.Quote(c.Key.Namespace.Salt), c.Key.Namespace.Salt != ""
		},
	},
	flag("bigram", func(c *Call) *bool { return &c.Key.Bigram }),
}

var insertFields = append(append([]fieldSpec{}, keyFields...),
	slotsField,
	optionalSlots("mamba", func(c *Call) *tree.Slots { return &c.Mamba }),
	optionalInt("prev", func(c *Call) *int { return &c.Prev }),
	optionalInt("swa-evicted", func(c *Call) *int { return &c.SWAEvicted }),
	optionalInt("swa-branch", func(c *Call) *int { return &c.SWABranch }),
	flag("chunked", func(c *Call) *bool { return &c.Chunked }),
	field("priority", func(c *Call) *int64 { return &c.Priority }, parseInt64, formatInt64).
		unless(func(c *Call) bool { return c.Priority == 0 }),
	flag("adopted", func(c *Call) *bool { return &c.Adopted }),
	field("session", func(c *Call) *string { return &c.Session }, parseString, strconv.Quote).
		unless(func(c *Call) bool { return c.Session == "" }),
)

var switchFields = []fieldSpec{
	flag("host-tier", func(c *Call) *bool { return &c.Switches.HostTier }),
	flag("storage", func(c *Call) *bool { return &c.Switches.Storage }),
	field("write-through-threshold", func(c *Call) *int { return &c.Switches.WriteThroughThreshold }, parseInt, strconv.Itoa).
		unless(func(c *Call) bool { return c.Switches.WriteThroughThreshold == defaultThreshold }),
	flag("write-back", func(c *Call) *bool { return &c.Switches.WriteBack }),
	flag("swa-host-pool", func(c *Call) *bool { return &c.Switches.SWAHostPool }),
	flag("host-buffer-only", func(c *Call) *bool { return &c.Switches.HostBufferOnly }),
	flag("external-linker", func(c *Call) *bool { return &c.Switches.ExternalLinker }),
	flag("swa-ring-layout", func(c *Call) *bool { return &c.Switches.SWARingLayout }),
}

var sanityFields = []fieldSpec{
	field("write-through", func(c *Call) *[]tree.InFlight { return &c.WriteThrough }, parseInFlight, formatInFlight).
		unless(func(c *Call) bool { return len(c.WriteThrough) == 0 }).as(inFlightHandle),
	field("load-back", func(c *Call) *[]tree.InFlight { return &c.LoadBack }, parseInFlight, formatInFlight).
		unless(func(c *Call) bool { return len(c.LoadBack) == 0 }).as(inFlightHandle),
}
