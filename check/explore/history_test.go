// SPDX-License-Identifier: Apache-2.0

package explore

import "testing"

// TestCircle: a way from a text back to it is spare where each of its steps is made again behind it, and nothing on it
// is kept. The histories were looked at by hand: letters are texts, a capital one is kept.
func TestCircle(t *testing.T) {
	for _, tt := range []struct {
		texts     string
		from, end int // what is looked for begins behind the text at from-1
	}{
		{"AbaB", 1, 0},    // a-b is made again, b-a is not
		{"AbabaB", 1, 3},  // both are
		{"AbabA", 1, 3},   // likewise, though only just
		{"ABabA", 1, 0},   // b is kept
		{"AbAbaB", 1, 0},  // the end of the way is kept
		{"AbcabcA", 1, 4}, // a way of three steps
		{"AbcabaC", 1, 0}, // c-a is not made again
		{"AaA", 1, 2},     // the same text again, which is no step
		{"AabaB", 1, 2},   // likewise
		{"AbcbcB", 2, 4},  // from the b on
		{"AbcbaC", 2, 0},  // c-b is not made again
		{"AbcdabcdA", 1, 5},
		{"AB", 1, 0},
	} {
		h := history{n: len(tt.texts)}
		for i, r := range tt.texts {
			h.text[i], h.kept[i] = uint8(r|0x20), r < 'a'
		}
		if got := h.circle(tt.from); got != tt.end {
			t.Errorf("%s from %d: %d, want %d", tt.texts, tt.from, got, tt.end)
		}
	}
}
