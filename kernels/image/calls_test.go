// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/records/vmlinux"
)

var update = flag.Bool("update", false, "write testdata/calls.txt anew, of the images in TEXTPOKE_IMAGES")

// overRedZone is the constant that mechanisms.rules names.
const overRedZone = "488d642480"

const callsFile = "testdata/calls.txt"

// looksFor are the names that the rules look for, as their source quotes them.
func looksFor(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for file, name := range map[string]string{"mechanisms.rules": `\b([a-z0-9]*_[a-z0-9_]+)`, "kernel.go": `"([a-z_][a-z0-9_]+)"`} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b = regexp.MustCompile(`(?m)^# .*`).ReplaceAll(b, nil)
		for _, m := range regexp.MustCompile(name).FindAllStringSubmatch(string(b), -1) {
			names[m[1]] = true
		}
	}
	names["_stext"], names["_etext"] = false, false // no code is kept
	return names
}

// callsOf writes what the rules look at in a kernel: which of the names it has, and the calls that
// lead to any of them; and what they made of the whole kernel.
func callsOf(k *Kernel, names map[string]bool) string {
	found, _ := k.Mechanisms()
	leads := map[string]bool{}
	for more := true; more; {
		more = false
		for f, calls := range k.called {
			for to := range calls {
				if !leads[f] && (names[to] || leads[to]) {
					leads[f], more = true, true
				}
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "kernel %s %s\n", k.Arch.Name, k.Release)
	if k.batchErr == nil {
		fmt.Fprintf(&b, "batch %d %d", k.batch.Slots, k.batch.Rounds)
		if !k.batch.FromOrder { // as of no release
			fmt.Fprintf(&b, " sorted, of %d", k.batch.Queued)
		}
		fmt.Fprintln(&b)
	}
	for _, kind := range []string{"text", "data"} {
		fmt.Fprint(&b, kind)
		for _, s := range k.All {
			plain := vmlinux.Plain(s.Name)
			wanted := names[plain] || plain == "save_func" || strings.HasSuffix(plain, "fgraph_func")
			if s.IsText() == (kind == "text") && wanted {
				fmt.Fprint(&b, " ", s.Name)
			}
		}
		fmt.Fprintln(&b)
	}
	if (&examiner{Kernel: k}).constant([]string{overRedZone}) {
		fmt.Fprintf(&b, "constant %s\n", overRedZone)
	}
	for _, f := range sortedNames(k.called) {
		var to []string
		for _, g := range sortedNames(k.called[f]) {
			if names[g] || leads[g] {
				to = append(to, fmt.Sprintf("%s*%d", g, k.called[f][g]))
			}
		}
		if len(to) > 0 {
			fmt.Fprintf(&b, "calls %s %s\n", f, strings.Join(to, " "))
		}
	}
	for _, m := range found {
		fmt.Fprintf(&b, "shows %s %d %s\n", m.Name, m.Value, m.Evidence)
	}
	return b.String()
}

// kernelOf reads what callsOf wrote.
func kernelOf(t *testing.T, text string) (k *Kernel, shows []string) {
	t.Helper()
	k = &Kernel{called: map[string]map[string]int{}, batchRan: true, batchErr: ErrNoBatch}
	var symbols []vmlinux.Symbol
	var arch *vmlinux.Arch
	var segments []vmlinux.Segment
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "kernel":
			arch = map[string]*vmlinux.Arch{"x86_64": vmlinux.OfMachine(elf.EM_X86_64),
				"arm64": vmlinux.OfMachine(elf.EM_AARCH64), "riscv64": vmlinux.OfMachine(elf.EM_RISCV)}[fields[1]]
		case "batch":
			k.batchErr, k.batch.FromOrder = nil, len(fields) == 3
			_, err := fmt.Sscan(fields[1]+" "+fields[2], &k.batch.Slots, &k.batch.Rounds)
			if err == nil && !k.batch.FromOrder {
				_, err = fmt.Sscan(fields[5], &k.batch.Queued)
			}
			if err != nil {
				t.Fatal(err)
			}
		case "text", "data":
			for _, name := range fields[1:] {
				symbols = append(symbols, vmlinux.Symbol{Name: name, Type: fields[0][0], Addr: uint64(len(symbols))})
			}
		case "constant": // behind the text
			b, err := hex.DecodeString(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			const end = 1 << 32
			symbols = append(symbols, vmlinux.Symbol{Name: "_stext"}, vmlinux.Symbol{Name: "_etext", Addr: end})
			segments = []vmlinux.Segment{{Addr: end, Data: b}}
		case "calls":
			calls := map[string]int{}
			for _, f := range fields[2:] {
				name, count, _ := strings.Cut(f, "*")
				n, err := strconv.Atoi(count)
				if err != nil {
					t.Fatal(err)
				}
				calls[name] = n
			}
			k.called[fields[1]] = calls
		case "shows":
			shows = append(shows, strings.TrimSpace(strings.TrimPrefix(line, "shows ")))
		}
	}
	memory := &vmlinux.Memory{Arch: arch, Segments: segments}
	k.Kernel = &vmlinux.Kernel{Symbols: vmlinux.NewSymbols("", symbols), Memory: memory}
	return k, shows
}

// TestCalls: of kernels of three instruction sets, from 5.10 to 7.3, the rules see in the calls
// between their functions how each patches: what they see in the whole images, too.
func TestCalls(t *testing.T) {
	names := looksFor(t)
	if *update {
		var all []string
		for _, path := range realImages(t) {
			k, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, callsOf(k, names))
		}
		if err := os.WriteFile(callsFile, []byte(strings.Join(all, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(callsFile)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(b), "\n\n") {
		title, _, _ := strings.Cut(text, "\n")
		k, want := kernelOf(t, text)
		found, unknown := k.Mechanisms()
		var got []string
		for _, m := range found {
			got = append(got, fmt.Sprintf("%s %d %s", m.Name, m.Value, m.Evidence))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %q are unknown\n%s", title, unknown, diff)
		}
	}
}

// TestStaticCallsOfSymbols: each call once, with its sites, whether it has a key, a trampoline or both.
func TestStaticCallsOfSymbols(t *testing.T) {
	m := newMade()
	m.name(0x3000, 'D', "__SCK__b")
	m.name(0x3010, 'D', "__SCK__a")
	m.name(0x100, 'T', "__SCT__b")
	m.name(0x110, 'T', "__SCT__c")
	m.name(0x4000, 'D', "__start_static_call_sites")
	for i, s := range [][2]int{{0x200, 0x3000}, {0x180, 0x3001}, {madeInit, 0x3000}, {0x240, 0x3012}} {
		m.put(0x4000+8*i, near(0x4000+8*i, s[0]), near(0x4004+8*i, s[1]))
	}
	m.name(0x4000+4*8, 'D', "__stop_static_call_sites")
	k := m.kernel()
	if d := cmp.Diff([]Call{{"a", false, 1}, {"b", true, 2}, {"c", true, 0}}, k.StaticCalls()); d != "" {
		t.Error(d)
	}
	if k.Sites.Entries != 4 || k.Sites.Init != 1 || !slices.Equal(k.Sites.Of[madeBase+0x3000], []uint64{madeBase + 0x200,
		madeBase + 0x180}) {
		t.Errorf("%+v", k.Sites)
	}
}
