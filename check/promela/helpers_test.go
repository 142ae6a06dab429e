// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

var spin = flag.Bool("spin", false, "let Spin search the models, too")

// setup is a protocol on a small machine.
func setup(t testing.TB, arch, protocol, mutation string, ncpus, sites int) explore.Setup {
	t.Helper()
	a, err := cpus.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	s := explore.Setup{Arch: a, Protocol: poke.Named(protocol, a.Traits()), Sites: sites, Fetch: cpus.Weak}
	s.Roles = slices.Repeat([]cpus.Role{cpus.Busy}, ncpus)
	if mutation != "" {
		if s.Mutation, err = s.Protocol.Mutation(mutation, shape(t, s)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func shape(t testing.TB, s explore.Setup) poke.Shape {
	t.Helper()
	site, err := s.Arch.Site(4, s.Protocol.Layout)
	if err != nil {
		t.Fatal(err)
	}
	return poke.Shape{Traits: s.Arch.Traits(), Len: int(site.Len), Detach: true}
}

func model(t testing.TB, s explore.Setup) *explore.Model {
	t.Helper()
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func exported(t testing.TB, m *explore.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// needSpin skips a test where Spin is not asked, or cannot be.
func needSpin(t testing.TB) {
	t.Helper()
	if !*spin {
		t.Skip("Spin is asked with -spin; .ci/spin does so")
	}
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: there is no second search to compare with", tool)
		}
	}
}

// quickly builds what is not worth optimising: nearly all the time goes into
// compiling, and tcc takes a twentieth of gcc's.
func quickly() []string {
	if _, err := exec.LookPath("tcc"); err == nil {
		return []string{"tcc", "-DNOREDUCE"}
	}
	return []string{"gcc", "-O0", "-DNOREDUCE"}
}

// atOnce is how many compilers run side by side.
var atOnce = make(chan struct{}, 2)

// build makes Spin's search of a model, and returns the directory that it is in.
func build(t testing.TB, model []byte, compiler ...string) string {
	t.Helper()
	atOnce <- struct{}{}
	defer func() { <-atOnce }()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.pml"), model, 0o666); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "spin", "-a", "model.pml")
	command(t, dir, compiler[0], append(compiler[1:], "-w", "-DSAFETY", "-o", "pan", "pan.c")...)
	return dir
}

func command(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

var (
	assertion = regexp.MustCompile(`(?m)^pan:\d+: assertion violated +!\(?([a-z_]+)\)?`)
	endState  = regexp.MustCompile(`(?m)^pan:\d+: invalid end state`)
)

// broken reads what pan has found broken: nothing where it has looked at every
// state and all was well.
func broken(t testing.TB, out string) (list []cpus.Property) {
	t.Helper()
	for _, m := range assertion.FindAllStringSubmatch(out, -1) {
		p := cpus.Property(strings.ReplaceAll(m[1], "_", "-"))
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	if endState.MatchString(out) {
		list = append(list, cpus.Deadlock)
	}
	whole := strings.Contains(out, "errors: 0") && !strings.Contains(out, "Search not completed") &&
		!strings.Contains(out, "too small")
	if len(list) == 0 && !whole {
		t.Fatalf("pan has neither found anything nor looked at everything:\n%s", out)
	}
	return list
}
