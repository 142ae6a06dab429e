// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Block is a line "KEY: VALUE" of a text, and the indented lines below it.
type Block struct {
	Key, Value string
	Line       int // from 1
	Items      []Item
}

// Item is an indented line.
type Item struct {
	Text string
	Line int
}

// maxLine is the most bytes of a line in a block.
const maxLine = 1000

// Blocks cuts a text into blocks, whose keys are some of those that there are. Empty lines say nothing, nor do those that
// begin with #. Errors are *[ParseError].
func Blocks(file, text string, keys []string) (out []Block, err error) {
	for i, s := range strings.Split(text, "\n") {
		wrong := func(format string, args ...any) error {
			return &ParseError{File: file, Line: i + 1, Reason: fmt.Sprintf(format, args...)}
		}
		s = strings.TrimRight(s, " \t\r")
		said := strings.TrimSpace(s)
		key, value, colon := strings.Cut(s, ":")
		switch {
		case len(s) > maxLine:
			return nil, wrong("%d bytes in a line: want %d at most", len(s), maxLine)
		case !utf8.ValidString(s):
			return nil, wrong("not UTF-8")
		case said == "" || said[0] == '#':
		case s != said && out == nil:
			return nil, wrong("%q is indented, and nothing is above it", said)
		case s != said:
			b := &out[len(out)-1]
			b.Items = append(b.Items, Item{said, i + 1})
		case !colon || !slices.Contains(keys, key):
			return nil, wrong("%q: %v", key, spelling.NotOneOf(key, keys))
		default:
			out = append(out, Block{Key: key, Value: strings.TrimSpace(value), Line: i + 1})
		}
	}
	return out, nil
}
