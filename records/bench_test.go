// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// BenchmarkRead reads a million lines of each text format.
func BenchmarkRead(b *testing.B) {
	const n = 1_000_000
	tab := mustOpen(b, "gen:n=1000000,modules=0.1,order=sorted", Options{})
	for name, write := range map[string]func(io.Writer, *Table) error{"addrs": WriteAddrs, "csv": WriteCSV} {
		var text bytes.Buffer
		if err := write(&text, tab); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				if _, err := Read(context.Background(), "bench", bytes.NewReader(text.Bytes()), Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, n := range []int{40_000, 10_000_000} {
		for _, order := range genOrders {
			spec := fmt.Sprintf("gen:n=%d,modules=0.1,misaligned=0.01,order=%s", n, order)
			b.Run(fmt.Sprintf("n=%d/%s", n, order), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					mustOpen(b, spec, Options{})
				}
			})
		}
	}
}

func BenchmarkBuiltin(b *testing.B) {
	for _, t := range builtins {
		b.Run(t.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustOpen(b, t.Name, Options{})
			}
		})
	}
}

func BenchmarkFilter(b *testing.B) {
	tab := mustOpen(b, "x86_64-6.12-modules", Options{})
	for _, expr := range []string{"vfs_*", "*lock*", "a*b*c*", ":mod:ext4"} {
		f, err := ParseFilter([]string{expr})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(expr, func(b *testing.B) {
			for b.Loop() {
				f.Match(tab)
			}
		})
	}
}

// TestBig holds ten million records to their limits: memory below 300 MB, and
// lists of that many lines readable.
func TestBig(t *testing.T) {
	if !*long {
		t.Skip("slow; -long runs it")
	}
	for _, order := range genOrders {
		start := time.Now()
		tab, used := measured(t, func() *Table { return mustOpen(t, "gen:n=10000000,order="+order, Options{}) })
		t.Logf("%s: %v, %d MB", order, time.Since(start), used>>20)
		if used > 300<<20 {
			t.Errorf("%s: %d MB", order, used>>20)
		}
		st := tab.Stats()
		if st.Records != 10_000_000 {
			t.Errorf("%s: %d records", order, st.Records)
		}
	}
	start := time.Now()
	tab, used := measured(t, func() *Table {
		tab, err := Read(context.Background(), "big", io.LimitReader(&manyLines{}, 10_000_000*24), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return tab
	})
	t.Logf("10 million lines: %v, %d MB", time.Since(start), used>>20)
	if tab.Len() != 10_000_000 || used > 400<<20 {
		t.Errorf("%d records, %d MB", tab.Len(), used>>20)
	}
}

// measured is what is left allocated by making a table.
func measured(t *testing.T, load func() *Table) (*Table, uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tab := load()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return tab, after.HeapAlloc - before.HeapAlloc
}

// manyLines are lines of 24 bytes, made up while they are read.
type manyLines struct {
	n    int
	rest string
}

func (m *manyLines) Read(p []byte) (int, error) {
	if m.rest == "" {
		var b strings.Builder
		for range 1000 {
			m.n++
			fmt.Fprintf(&b, "%016x s%05d\n", 0xffffffff81000004+16*uint64(m.n), m.n%100000)
		}
		m.rest = b.String()
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}
