// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// realImages are images in the directory that the environment names: DIR/NAME/vmlinuz.
// They are not in the repository: a distribution's package of a kernel has one.
func realImages(t testing.TB) (paths []string) {
	t.Helper()
	const env = "TEXTPOKE_IMAGES"
	dir := os.Getenv(env)
	if dir == "" {
		t.Skipf("%s names no directory with images (NAME/vmlinuz)", env)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "vmlinuz"))
	if err != nil || len(paths) == 0 {
		t.Skipf("%s: no NAME/vmlinuz below it", dir)
	}
	return paths
}

// factsOf is what golden.csv holds of an image.
func factsOf(k *Kernel) []string {
	_, unknown := k.Mechanisms()
	return []string{
		k.Hash,
		k.Arch.Name,
		k.Release,
		k.Form,
		strings.ReplaceAll(k.Layout, ",", " "),
		fmt.Sprint(len(k.All)),
		fmt.Sprint(len(k.Records.Sites)),
		fmt.Sprint(k.Records.Init),
		fmt.Sprint(k.Records.Invalid + k.Records.Empty),
		fmt.Sprint(len(k.Keys.Branches)),
		fmt.Sprint(k.Sites.Entries - k.Sites.Init),
		fmt.Sprint(len(k.Events)),
		fmt.Sprint(k.CallOps()),
		k.Protocol(),
		fmt.Sprint(len(unknown)),
	}
}

const goldenHeader = "sha256,arch,release,form,layout,symbols,records," +
	"init_records,invalid_records,static_keys,static_call_sites,trace_events,call_ops,protocol,not_understood"

// TestRealImages holds images against what is known of them by their hash. Records of
// x86_64 6.12.107 (42757), arm64 6.12.107 (48048), riscv64 7.2.13 (41845) and riscv64
// 6.12.107 (37830) are as many as these kernels list when they are booted.
func TestRealImages(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil || strings.Join(rows[0], ",") != goldenHeader {
		t.Fatal(err, rows[0])
	}
	golden := map[string][]string{}
	for _, row := range rows[1:] {
		golden[row[0]] = row
	}
	for _, path := range realImages(t) {
		k, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		switch got, want := factsOf(k), golden[k.Hash]; {
		case want == nil:
			t.Logf("not in golden.csv: %s", strings.Join(got, ","))
		case !slices.Equal(got, want):
			t.Errorf("%s:\n%v, want\n%v", path, got, want)
		}
	}
}

// TestScribbled: whatever is written into an unpacked kernel, it is read or refused in
// one line.
func TestScribbled(t *testing.T) {
	for i, path := range realImages(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		linked, err := vmlinux.Read(path, bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for round := range 3 {
			n := &vmlinux.Memory{Arch: linked.Arch, Form: linked.Form}
			for _, s := range linked.Segments {
				d := slices.Clone(s.Data)
				for range len(d) >> (8 + 2*round) {
					d[r.IntN(len(d))] = byte(r.Uint32())
				}
				n.Segments = append(n.Segments, vmlinux.Segment{Addr: s.Addr, Data: d})
			}
			again, err := vmlinux.FromMemory(path, n)
			if err != nil {
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("%q", err)
				}
				continue
			}
			k := Of(again)
			k.use(t)
		}
	}
}

// use asks for all that an image tells.
func (k *Kernel) use(t *testing.T) {
	t.Helper()
	k.Mechanisms()
	k.Tracepoints()
	k.StaticCalls()
	k.KeyNames()
	k.Records.LandingPads()
	if _, err := k.Table(); err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("%q", err)
	}
}

// BenchmarkInspect reads an image: the first that the environment's directory holds.
func BenchmarkInspect(b *testing.B) {
	for _, path := range realImages(b) {
		b.Run(filepath.Base(filepath.Dir(path)), func(b *testing.B) {
			for b.Loop() {
				if _, err := Open(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
