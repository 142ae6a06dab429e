// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/internal/choice"
)

// TestAgain: a list that is given again goes on, and takes the place of its default the first time.
func TestAgain(t *testing.T) {
	var names []string
	var n int
	fields := []*choice.Field{choice.List(&names, "names", "a,b,c", "", choice.OneOf([]string{"a", "b", "c"})),
		choice.Count(&n, "n", 0, "", 1, 9)}
	if err := choice.Complete(fields); err != nil {
		t.Fatal(err)
	}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	Bind(set, fields...)
	if err := set.Parse([]string{"--names", "c", "--n=3", "--names=a,b", "--n", "4"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names, []string{"c", "a", "b"}) || n != 4 {
		t.Errorf("%v, %d", names, n)
	}
}
