// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/gdb"
)

// Config is the machine to boot, and the actions to measure.
type Config struct {
	// Image is the file of the kernel: a bzImage, or an Image, which may be packed by gzip or as EFI's zboot.
	Image string
	// CPUs are the machine's, as [ParseCPUs] reads them.
	CPUs []cpus.Role
	// Actions are names of actions, such as function-tracer.
	Actions []string
	// Repetitions of each; 0 for 3.
	Repetitions int
	// Modules are files of kernel modules that are loaded first, in this order.
	Modules []string
	// Callers has the guest tell who interrupts others, in place of clean counts.
	Callers bool
	// Memory of the machine in MiB; 0 for 1,024.
	Memory int
	// Debug, where there is one, is called once the guest is up, with the socket on which QEMU's gdb server listens
	// and with what lets the guest, which waits, begin. Its context ends with the machine, and the machine with its
	// first error, which Measure gives. A machine that dies after that is not booted again.
	Debug func(ctx context.Context, socket string, begin func() error) error
	// Progress gets a line for each step that is done; nil for none.
	Progress func(string)

	// more is what tests bring: source of the guest besides ours, and files for the machine.
	more struct {
		source map[string][]byte
		files  []entry
	}
}

// Measurement is what was counted.
type Measurement struct {
	Arch string
	CPUs []cpus.Role
	Told
}

// Measure boots the image and counts. It ends when ctx does, and returns the readings so
// far beside the error. When the machine fails, the error names a file with the console's
// output.
func Measure(ctx context.Context, c Config) (*Measurement, error) {
	if c.Repetitions == 0 {
		c.Repetitions = 3
	}
	if c.Memory == 0 {
		c.Memory = 1024
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	dir, err := os.MkdirTemp("", "textpoke-vm-")
	if err != nil {
		return nil, fmt.Errorf("boot %s: %w", c.Image, err)
	}
	defer os.RemoveAll(dir)
	kernel, e, err := bootable(c.Image, dir)
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(e.QEMU); err != nil {
		return nil, fmt.Errorf("boot %s: %s is not installed (Debian's package %s)", c.Image, e.QEMU, e.Debian)
	}
	disk := filepath.Join(dir, "initramfs")
	if err := c.initramfs(ctx, e, disk); err != nil {
		return nil, err
	}
	m := &Measurement{Arch: e.Arch, CPUs: c.CPUs}
	for boots := 1; ; boots++ {
		told, err := c.boot(ctx, e, kernel, disk)
		if told != nil {
			m.Told = *told
		}
		var failed *BootError
		if !errors.As(err, &failed) || !errors.Is(err, ErrDied) || boots == mostBoots || c.Debug != nil && m.Release != "" {
			return m, err
		}
		c.Progress(err.Error() + ": once more")
		_ = os.Remove(failed.Console)
	}
}

// BootError is a machine that did not come to its end.
type BootError struct {
	Image, Console string // files: the kernel, its console's output
	Err            error
}

func (e *BootError) Unwrap() error { return e.Err }
func (e *BootError) Error() string {
	return fmt.Sprintf("boot %s: %v (its console: %s)", e.Image, e.Err, e.Console)
}

// mostBoots is how often a machine is booted that dies.
const mostBoots = 3

// ErrDied is a machine that went off by itself.
var ErrDied = errors.New("the kernel panicked")

// initramfs writes the machine's only disk: the guest, its job, and modules.
func (c *Config) initramfs(ctx context.Context, e *emulator, file string) error {
	c.Progress("guest for " + e.Arch)
	program, err := guest(ctx, e, c.more.source)
	if err != nil {
		return err
	}
	files := []entry{{"proc", folder, nil}, {"sys", folder, nil}, {"dev", folder, nil}, {"init", executable, program}}
	files = append(files, c.more.files...)
	var modules, actions []string // as the guest calls them
	for _, m := range c.Modules {
		f, err := moduleEntry(m)
		if err != nil {
			return err
		}
		files = append(files, f)
		modules = append(modules, f.name)
	}
	for _, a := range c.Actions {
		more, err := filesOf(a)
		if err != nil {
			return err
		}
		files = append(files, more...)
		if a = asMeasured(a); c.Callers {
			a = "callers:" + a
		}
		actions = append(actions, a)
	}
	job, err := json.Marshal(map[string]any{"Repetitions": c.Repetitions, "Wait": c.Debug != nil, "Modules": modules,
		"Actions": actions, "Busy": withRole(c.CPUs, cpus.Busy)})
	if err != nil {
		return err
	}
	files = append(files, entry{"job", plain, job})
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err == nil {
		err = writeCPIO(z, files)
	}
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	return nil
}

// farewell is how long a machine whose guest is done may take to switch itself off: kernels without a driver for that
// never do. A variable, for tests.
var farewell = 10 * time.Second

// boot runs the machine until it switches itself off.
func (c *Config) boot(ctx context.Context, e *emulator, kernel, disk string) (*Told, error) {
	log, err := os.CreateTemp("", "textpoke-console-*.log")
	if err != nil {
		return nil, fmt.Errorf("boot %s: %w", c.Image, err)
	}
	defer log.Close()
	args := append([]string{"-smp", fmt.Sprint(len(c.CPUs)), "-m", fmt.Sprintf("%dM", c.Memory), "-display", "none", "-no-reboot",
		"-nodefaults", "-serial", "stdio", "-kernel", kernel, "-initrd", disk}, e.Machine...)
	line, socket := commandLine(e, c.CPUs), filepath.Join(filepath.Dir(disk), "gdb")
	if c.Debug != nil {
		args = append(args, "-gdb", "unix:path="+socket+",server=on,wait=off")
	} else {
		line += " " + e.Counted
	}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	q := exec.CommandContext(running, e.QEMU, append(args, "-append", line)...)
	q.WaitDelay = 5 * time.Second
	var complaint bytes.Buffer
	q.Stderr = &complaint
	out, noOut := q.StdoutPipe()
	in, noIn := q.StdinPipe()
	if err := errors.Join(noOut, noIn); err != nil {
		return nil, fmt.Errorf("boot %s: %w", c.Image, err)
	}
	start := time.Now()
	c.Progress("boot " + c.Image)
	if err := q.Start(); err != nil {
		return nil, fmt.Errorf("boot %s: %w", c.Image, err)
	}
	hear, debugged := c.beside(running, end, socket, in, c.hear(start))
	told, heard := listen(io.TeeReader(out, log), len(c.CPUs), func(t *Told) {
		if hear(t); t.Done && c.Debug == nil { // a debugger ends the machine itself
			time.AfterFunc(farewell, func() { _ = q.Process.Kill() })
		}
	})
	if heard != nil {
		_ = q.Process.Kill()
	}
	ended := q.Wait()
	end(gdb.ErrGone)
	err = c.failed(ctx, told, heard, ended, strings.TrimSpace(complaint.String()))
	if wrong := debugged(); wrong != nil {
		err = wrong
	}
	if err != nil {
		return told, &BootError{c.Image, log.Name(), err}
	}
	return told, os.Remove(log.Name())
}

// beside calls Debug, in a goroutine, when the guest is up. The second func waits until it is through.
func (c *Config) beside(ctx context.Context, end context.CancelCauseFunc, socket string, guest io.Writer,
	hear func(*Told)) (func(*Told), func() error) {
	var debug errgroup.Group
	begin := func() error {
		_, err := io.WriteString(guest, "\n")
		return err
	}
	started := c.Debug == nil
	return func(t *Told) {
		hear(t)
		if !started && t.Release != "" {
			started = true
			debug.Go(func() error {
				err := c.Debug(ctx, socket, begin)
				if err != nil {
					end(err)
				}
				return err
			})
		}
	}, debug.Wait
}

// failed is why a machine did not come to its end; nil if it did.
func (c *Config) failed(ctx context.Context, told *Told, heard, ended error, complaint string) error {
	switch {
	case told.Done && heard == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case heard != nil:
		return heard
	case ended != nil && complaint != "":
		first, _, _ := strings.Cut(complaint, "\n")
		return errors.New(first)
	case ended != nil:
		return fmt.Errorf("the emulator: %w", ended)
	case told.Release == "":
		return fmt.Errorf("%w before the guest said anything: does it take an initial RAM disk and a serial console?",
			ErrDied)
	}
	return fmt.Errorf("%w before the guest was done", ErrDied)
}

// hear makes progress of the guest's readings.
func (c *Config) hear(start time.Time) func(*Told) {
	readings := 0
	return func(t *Told) {
		at := time.Since(start).Round(time.Second)
		switch {
		case len(t.Readings) > readings:
			readings = len(t.Readings)
			r := t.Readings[readings-1]
			c.Progress(fmt.Sprintf("%v: %s %s %d", at, r.Action, r.Direction, r.Repetition))
		case t.Release != "" && len(t.Readings) == 0:
			c.Progress(fmt.Sprintf("%v: %s is up", at, t.Release))
		}
	}
}
