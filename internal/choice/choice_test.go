// SPDX-License-Identifier: Apache-2.0

package choice_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/internal/choice"
)

// Two fields: the declaration says the default, the unit and the values, and refuses others.
func Example() {
	var pause time.Duration
	var sizes []uint64
	fields := []*choice.Field{
		choice.Time(&pause, "pause", 10*time.Second, "the `time` between two looks", 1),
		choice.Sizes(&sizes, "size", "4K,2M", "`list` of numbers of bytes", 1<<30),
	}
	fmt.Println(choice.Complete(fields), pause, sizes)
	fmt.Println(fields[0].Set("-1s"))
	fmt.Println(fields[0], fields[1], fields[1].Unit)
	// Output:
	// <nil> 10s [4096 2097152]
	// want a time above 0, such as 10s
	// 10s 4K,2M bytes
}

func whereabouts(s string) (string, error) {
	if s != "here" && s != "there" {
		return "", errors.New("nowhere")
	}
	return s, nil
}

// TestKinds: each kind reads what it prints, and says what it wants of other texts.
func TestKinds(t *testing.T) {
	var (
		n     int
		many  []int
		on    bool
		text  string
		file  string
		rate  *float64
		d     time.Duration
		names []string
	)
	for _, tt := range []struct {
		field             *choice.Field
		good, wrong, want string
	}{
		{choice.Count(&n, "n", 3, "", 1, 9), "9", "10", "want whole numbers from 1 to 9"},
		{choice.Count(&n, "n", 3, "", 1, math.MaxInt), "10", "0", "want a whole number, 1 or more"},
		{choice.Counts(&many, "many", "", "", 0, 5), "0,5", "5,6", "want whole numbers from 0 to 5"},
		{choice.Flag(&on, "on", ""), "true", "yes", "want true or false"},
		{choice.Text(&text, "text", "", ""), "a,b", "", "want a name"},
		{choice.File(&file, "file", ""), "/etc/passwd", "", "want a name"},
		{choice.Rate(&rate, "rate", ""), "0.5", "1e10", "want a number from 0 to 1e9"},
		{choice.Time(&d, "d", 0, "", time.Second), "1m0s", "1ms", "want a time of at least 1s"},
		{choice.Time(&d, "d", 0, "", 0), "1m0s", "5", "want a time such as 500ms, 10s or 1h30m"},
		{choice.List(&names, "names", "here,there", "", choice.Named([]string{"here", "there"}, whereabouts,
			strings.Clone)), "there", "ther", "not one of here, there; did you mean there?"},
	} {
		if err := tt.field.Set(tt.good); err != nil || tt.field.String() != tt.good {
			t.Errorf("%s: %q, %v", tt.field.Name, tt.field, err)
		}
		if err := tt.field.Set(tt.wrong); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.field.Name, err, tt.want)
		}
		if tt.field.String() != tt.good {
			t.Errorf("%s: a text that was refused has made it %q", tt.field.Name, tt.field)
		}
		if err := choice.Validate([]*choice.Field{tt.field}); err != nil {
			t.Error(err)
		}
	}
}

// TestSpell: names are spelled wherever an error stands that names them.
func TestSpell(t *testing.T) {
	inner := choice.Errorf("%s: want %d", choice.Name("buffer"), 3)
	for _, tt := range []struct {
		err         error
		plain, want string
	}{
		{inner, "buffer: want 3", "--buffer: want 3"},
		{fmt.Errorf("plan buffer: %w", inner), "plan buffer: buffer: want 3", "plan buffer: --buffer: want 3"},
		{choice.Errorf("%s %q: %w", choice.Name("cpus"), "cpus", inner), `cpus "cpus": buffer: want 3`,
			`--cpus "cpus": --buffer: want 3`},
		{errors.Join(errors.New("first"), fmt.Errorf("x: %w", inner)), "first\nx: buffer: want 3", "first\nx: --buffer: want 3"},
		{errors.New("buffer"), "buffer", "buffer"},
	} {
		if got := tt.err.Error(); got != tt.plain {
			t.Errorf("%s, want %s", got, tt.plain)
		}
		if got := choice.Spell(tt.err, func(name string) string { return "--" + name }); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	if !errors.Is(choice.Errorf("%s: %w", choice.Name("a"), inner), inner) {
		t.Error("the error inside is lost")
	}
}
