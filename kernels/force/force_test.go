// SPDX-License-Identifier: Apache-2.0

package force

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/kernels/image"
)

var long = flag.Bool("long", false, "boot kernels")

// force forces the case on the kernel that TEXTPOKE_KERNEL names, with the modules of TEXTPOKE_MODULES.
func force(t *testing.T, name string) *Row {
	kernel := os.Getenv("TEXTPOKE_KERNEL")
	if !*long || kernel == "" {
		t.Skip("skipped: boots the kernel that TEXTPOKE_KERNEL names, with -long; .ci/vm does so")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("skipped: qemu-system-x86_64 is not installed: nothing is booted")
	}
	c, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	k, err := image.Open(kernel)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fits(k); err != nil {
		t.Skipf("skipped: %v", err)
	}
	var modules []string
	if list := os.Getenv("TEXTPOKE_MODULES"); list != "" {
		modules = strings.Split(list, ",")
	}
	if len(modules) != c.Modules {
		t.Skipf("skipped: want %d files in TEXTPOKE_MODULES", c.Modules)
	}
	row, err := Run(t.Context(), Config{Case: c, Image: kernel, Modules: modules, Tell: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *row)
	return row
}

// TestHitWhileBroughtUp forces on a kernel since Linux 6.3 that ftrace does not wait for CPUs that are brought up.
func TestHitWhileBroughtUp(t *testing.T) {
	if row := force(t, "hit-while-brought-up"); row.Outcome != Broke {
		t.Errorf("%s: want %s", row.Outcome, Broke)
	}
}

// TestForce forces the case that TEXTPOKE_CASE names, whatever comes of it.
func TestForce(t *testing.T) {
	name := os.Getenv("TEXTPOKE_CASE")
	if name == "" {
		t.Skip("skipped: forces the case that TEXTPOKE_CASE names")
	}
	force(t, name)
}

// TestRefused: what no kernel can be booted from is an error of one line, and leaves nothing behind.
func TestRefused(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("MZ no kernel"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Named("hit-while-brought-up")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{junk, filepath.Join(dir, "missing"), dir} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		row, err := Run(ctx, Config{Case: c, Image: file})
		cancel()
		if row != nil || err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", file, row, err)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestLast: when there is no time left nothing is begun again; and what ends from outside is told by its cause.
func TestLast(t *testing.T) {
	m, s := stands(t)
	s.stops = []string{""}
	st, err := ParseStep("cpu 0 to f within 1ms or again")
	if err != nil {
		t.Fatal(err)
	}
	var late *notReached
	if at, err := m.carry(t.Context(), []Step{st}, time.Now().Add(-time.Second)); at != 1 || !errors.As(err, &late) {
		t.Errorf("%d, %v", at, err)
	}
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	m, s = stands(t)
	s.stops = []string{""}
	st.limit = 20 * time.Millisecond
	if _, err := m.carry(ctx, []Step{st}, time.Now().Add(time.Minute)); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}
