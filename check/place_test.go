// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/sim/axis"
)

// TestPlaces: all are the offsets that an architecture's sites can have in their layout, and a
// question about one is asked again by its flags.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		choices axis.Choices
		want    []string
	}{
		{axis.Choices{"arch": {"x86_64"}}, []string{"0", "1", "2", "3", "4", "5", "6", "7"}},
		{axis.Choices{"arch": {"arm64"}}, []string{"4"}},
		{axis.Choices{"arch": {"arm64"}, "layout": {"plain"}}, []string{"0", "4"}},
		{axis.Choices{"arch": {"riscv64"}}, []string{"4"}},
		{axis.Choices{"arch": {"riscv64"}, "layout": {"plain"}}, []string{"0", "2", "4", "6"}},
		{axis.Choices{"arch": {"riscv64"}, "protocol": {"fence-per-write"}}, []string{"0", "2", "4", "6"}},
	} {
		c.choices["place"] = []string{AllPlaces}
		questions, _, err := Questions(c.choices)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range questions {
			got = append(got, q.Offset.String())
			if flags := strings.Join(q.Short(), " "); !strings.Contains(flags, "--place "+q.Offset.String()) {
				t.Errorf("%s does not say where sites lie", flags)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.choices, got, c.want)
		}
	}
}

// TestPlacesRefused: one where no site can be, and what is no offset.
func TestPlacesRefused(t *testing.T) {
	for place, want := range map[string]string{
		"3": "place 3: arm64: site of record", "8": `"8": want an offset from 0 to 7, or all`, "-1": `"-1": want`,
	} {
		_, _, err := Questions(axis.Choices{"arch": {"arm64"}, "place": {place}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", place, err, want)
		}
	}
}
