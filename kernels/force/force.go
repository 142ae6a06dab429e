// SPDX-License-Identifier: Apache-2.0

package force

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/vm"
	"github.com/textpoke/textpoke/results"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Config is what is forced, and on which kernel.
type Config struct {
	Case    *Case
	Image   string        // file of a kernel
	Modules []string      // files, as many as the case takes
	Limit   time.Duration // of a run; 0 for [Limit]
	Tell    func(string)  // what happens, one line at a time; nil for none
}

// Outcome is how a run went.
type Outcome string

// The outcomes.
const (
	Broke     Outcome = "broke"      // the kernel did what the case says
	Died      Outcome = "died"       // it died, and its console says something else
	Outlived  Outcome = "outlived"   // every step was forced, and it goes on
	NotForced Outcome = "not-forced" // a step could not be
)

// Row is one run.
type Row struct {
	Case, Release string
	Run           int
	Outcome       Outcome
	At            int // the last step that was begun
	Seconds       float64
	Why           string // the first line of the console that tells it, or what held the step up
	Alive         bool   // the kernel went on when all CPUs were let go
}

// StepColumns are a schedule's, for who only wants to read it.
var StepColumns = results.Declare[Step](declared, "step", nil)

// Limit is how long a run may take.
const Limit = 3 * time.Minute

// Columns are a row's.
var Columns = results.Declare[Row](declared, "rows", nil)

// afterwards is for how long a kernel runs on that may have outlived a case.
const afterwards = 10 * time.Second

// errEnough ends a machine that has shown what it was booted for.
var errEnough = errors.New("enough was seen")

// Run boots the kernel and forces the case on it, once. Errors are about the request, the image or the emulator. The
// row's outcome tells how the kernel fared, or the step that could not be forced.
func Run(ctx context.Context, c Config) (*Row, error) {
	if c.Tell == nil {
		c.Tell = func(string) {}
	}
	if c.Limit == 0 {
		c.Limit = Limit
	}
	k, err := image.Open(c.Image)
	switch {
	case err != nil:
		return nil, err
	case k.Arch.Name != arch:
		return nil, fmt.Errorf("%s: a kernel of %s: cases are forced on %s", c.Image, k.Arch.Name, arch)
	case len(c.Modules) != c.Case.Modules:
		return nil, fmt.Errorf("%s: want %d files of kernel modules, have %d", c.Case.Name, c.Case.Modules, len(c.Modules))
	}
	if err := c.Case.Fits(k); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", c.Image, c.Case.Name, err)
	}
	action := c.Case.Action
	for _, file := range c.Modules {
		action = strings.Replace(action, module, file, 1)
	}
	roles, err := vm.ParseCPUs(fmt.Sprint(c.Case.CPUs))
	if err != nil {
		return nil, err
	}
	row := &Row{Case: c.Case.Name, Release: k.Release, Run: 1}
	limited, cancel := context.WithTimeoutCause(ctx, c.Limit, fmt.Errorf("it did not end within %v", c.Limit))
	defer cancel()
	start := time.Now()
	measured, err := vm.Measure(limited, vm.Config{Image: c.Image, CPUs: roles, Actions: []string{action}, Repetitions: 1,
		Progress: c.Tell, Debug: func(ctx context.Context, socket string, begin func() error) error {
			return c.debug(ctx, k, row, socket, begin)
		}})
	row.Seconds = time.Since(start).Seconds()
	if measured != nil && len(measured.Skips) > 0 {
		err = fmt.Errorf("%s: %s", c.Image, measured.Skips[0].Why)
	}
	return row, c.judge(row, err)
}

// arch is the architecture that schedules are of.
const arch = x86_64.Name

// debug forces the steps on a machine that is up.
func (c *Config) debug(ctx context.Context, k *image.Kernel, row *Row, socket string, begin func() error) error {
	client, _, err := gdb.Dial(ctx, "unix", socket, gdb.LayoutOf(arch))
	if err != nil {
		return err
	}
	defer client.Close()
	m := &machine{Client: client, image: k, tell: c.Tell}
	if c.Case.Site != "" {
		if m.site, err = c.Case.site(k); err != nil {
			return err
		}
	}
	if err := begin(); err != nil {
		return err
	}
	at, err := m.carry(ctx, c.Case.Steps, time.Now().Add(c.Limit*2/3))
	row.At = at
	var late *notReached
	switch {
	case err == nil && len(c.Case.Breaks) == 0:
		row.Outcome = Broke
	case err == nil, errors.Is(err, errOtherwise):
		row.Outcome = Outlived
	case errors.Is(err, gdb.ErrGone): // it died in the middle: its console says of what
		return nil
	case errors.As(err, &late):
		row.Outcome, row.Why = NotForced, err.Error()
	default:
		return fmt.Errorf("step %d: %w", at, err)
	}
	return m.live(row)
}

// live lets all CPUs go on, and sees whether the kernel does.
func (m *machine) live(row *Row) error {
	m.tell("all CPUs go on")
	if err := m.Continue(); err != nil {
		return err
	}
	_, err := m.WaitFor(afterwards)
	if errors.Is(err, gdb.ErrGone) {
		return nil // what it said stands on its console
	}
	if row.Alive = err == nil; err == nil {
		err = errEnough
	}
	return err
}

// judge reads the console of a kernel that died.
func (c *Config) judge(row *Row, err error) error {
	var ended *vm.BootError
	if !errors.As(err, &ended) {
		return err
	}
	defer os.Remove(ended.Console)
	if errors.Is(err, errEnough) {
		return nil
	}
	if !errors.Is(err, vm.ErrDied) {
		return fmt.Errorf("%s: %s: %w", c.Image, c.Case.Name, ended.Err)
	}
	if row.At == 0 {
		return fmt.Errorf("%s: %w", c.Image, ended.Err)
	}
	console, err := os.ReadFile(ended.Console)
	if err != nil {
		return fmt.Errorf("%s: its console: %w", c.Image, err)
	}
	c.Tell(oops(string(console)))
	row.Why = firstLine(string(console))
	if row.Outcome == Broke { // the steps have seen it
		return nil
	}
	row.Outcome = Died
	if len(c.Case.Breaks) == 0 {
		return nil
	}
	for _, said := range c.Case.Breaks {
		if !strings.Contains(string(console), said) {
			return nil
		}
	}
	row.Outcome = Broke
	return nil
}

// marks begin what a kernel says that dies.
var marks = []string{"kernel BUG at", "Oops: ", "BUG: ", "general protection fault", "Kernel panic"}

// oops is the console from there on.
func oops(console string) string {
	first := len(console)
	for _, mark := range marks {
		if at := strings.Index(console, mark); at >= 0 {
			first = min(first, at)
		}
	}
	first = strings.LastIndexByte(console[:first], '\n') + 1
	return strings.TrimSpace(strings.ReplaceAll(console[first:], "\r", ""))
}

// firstLine is what is wrong in one line, without the time.
func firstLine(console string) string {
	line, _, _ := strings.Cut(oops(console), "\n")
	if _, said, ok := strings.Cut(line, "] "); ok && strings.HasPrefix(line, "[") {
		line = said
	}
	return line
}
