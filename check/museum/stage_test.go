// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/golden"
)

// TestMessages: each wrong text has its whole message, and each right one lays out its machine.
func TestMessages(t *testing.T) {
	const x86, arm = "machine:\n arch x86_64\n cpus 2\n", "machine:\n arch arm64\n cpus 2\n"
	const two = x86 + "text:\n disabled\n calls other, ops other\n"
	const patches = two + "patches:\n site 0, to calls entry\n site 1, from disabled, to disabled, to ops first_ops\n"
	var all bytes.Buffer
	for _, text := range []string{
		"", "# nothing", "machine:", " lost", "name: mine\n and more", "name mine", "name: a\nname: b", "nmae: a",
		"machine: x86_64",
		"machine:\nname: late", "machine:\nmachine:", "text:\n disabled\ntext:", "patches:\npatches:\npatcher:\npatcher:",
		"rests: weak, atomic\n" + x86, "rests: week\n" + x86, "rests: weak,atomic\n" + x86,
		"otherwise: x with weak, atomic\n" + x86, "otherwise: x with none\n" + x86, "otherwise: x\n" + x86,
		"machine:\n arch vax", "machine:\n arhc x86_64", "machine:\n length 5", x86 + " length 5", x86 + " length 0",
		x86 + " length 1",
		x86 + " length 8\ntext:\n bytes 1 2 3 4 5 6 7 8", x86 + " length 9", x86 + " length x", arm + " length 4",
		"machine:\n arch riscv64\n layout pair\n cpus 1\ntext:\n disabled", x86 + " layout single", x86 + " cpus none",
		x86 + " fetch coherent", x86 + " fetch never", x86 + " refs none", x86 + " refs many", x86 + " slots 3",
		x86 + " slots x",
		x86 + " queued in any order", x86 + " queued", x86 + " preempt", x86 + " preempt now", x86 + " always traced",
		x86 + " always",
		x86 + " deaf cpu 1", x86 + " deaf cpu 63", x86 + " deaf cpu 64", x86 + " deaf 1", x86 + " deaf cpu",
		x86 + " nmis at cpu 0", x86 + " nmis at site 0", x86 + " nmis cpu 0", x86 + " probed site 1", x86 + " probed cpu 1",
		arm + " without literals", "machine:\n arch riscv64\n cpus 1\n without masked-rounds", x86 + " without luck",
		x86 + " attached other, third", x86 + " attached 0x12, 7", x86 + " attached nobody",
		"text:\n disabled", x86 + "text:\n bytes 1", x86 + "text:\n bytes 1 2 3 4 xyz",
		x86 + "text:\n bytes 1 2 3 4 ff, ops 0x10",
		x86 + "text:\n cals entry", x86 + "text:\n calls nobody", x86 + "text:\n calls entry",
		x86 + "text:\n calls 0x1000000000000",
		x86 + "text:\n calls 0x1000000000000 through other", x86 + "text:\n calls 0x1000000000000 through 0x3000000000000",
		x86 + "text:\n calls 0x1000000000000 through nobody", x86 + "text:\n jumps to other", x86 + "text:\n jumps to nobody",
		x86 + "text:\n jumps to 0x1000000000000", arm + "text:\n jumps to other",
		"machine:\n arch riscv64\n cpus 1\ntext:\n jumps to other",
		x86 + "text:\n record 0xffffffff81001000, disabled\n disabled",
		x86 + "text:\n record nobody, disabled", x86 + "text:\n record entry", x86 + "text:\n disabled, entry",
		arm + "text:\n record 0x3, disabled",
		two, patches, two + "patches:\n site 2, to disabled", two + "patches:\n site -1", two + "patches:\n site x",
		two + "patches:\n 1",
		two + "patches:\n site 0, into disabled", two + "patches:\n site 0, to ops nobody",
		two + "patches:\n site 0, to nothing",
		two + "patches:\n site 0, from calls third, from ops other, to jumps to other",
		two + "patcher:\n Verify 0", patches + "patcher:\n Verify 1", patches + "patcher:\n Verify 2",
		patches + "patcher:\n Wriet tail",
		patches + "patcher:\n update breakpoint", patches + "patcher:\n update brakpoint 0",
		patches + "patcher:\n update breakpoint 0..1",
		patches + "patcher:\n update breakpoint 0..2", patches + "patcher:\n update breakpoint x",
		patches + "patcher:\n update breakpoint 1 back", patches + "patcher:\n update breakpoint 0..1 one by one",
		patches + "patcher:\n update breakpoint 0 twice", patches + "patcher:\n Verify 0\npatches:\npatcher:\n Verify 0",
		x86 + "miss:\n look again", x86 + "miss:\n despair",
	} {
		fmt.Fprintf(&all, "%s\n", strings.ReplaceAll(text, "\n", "|"))
		b, err := read("f", text)
		if err != nil {
			fmt.Fprintf(&all, "\t%v\n", err)
			continue
		}
		m, err := b.laidOut(false)
		if err != nil {
			fmt.Fprintf(&all, "\t%v\n", err)
			continue
		}
		c := m.Code
		fmt.Fprintf(&all, "\t%s%s rests %v otherwise %v\n", b.Name, b.Title, b.Rests, b.Otherwise)
		fmt.Fprintf(&all, "\t%s %v len %d layout %v fetch %v deaf %x nmis %x probed %x always %v literals %v masked %v\n",
			c.Traits.Name,
			m.Roles, c.Len, c.Layout, c.Fetch, c.Deaf, c.Disturbed, c.Probed, c.Always, c.Traits.CallOps, c.Traits.MaskedRounds)
		fmt.Fprintf(&all, "\trefs %v slots %d filling %v preempt %v attached %x\n", m.Refs, m.Slots, m.Filling, m.Preempt,
			m.Attached)
		for i, at := range c.Sites {
			fmt.Fprintf(&all, "\tsite %x holds %x ops %x\n", uint64(at), uint64(m.Initial[i]), m.Literals[i])
		}
		for _, p := range m.Programs {
			for _, of := range p.Patches {
				fmt.Fprintf(&all, "\tpatch of %d at %x: %x %x to %x %x\n", of.Site, uint64(of.Addr), uint64(of.Old), of.OldOps,
					uint64(of.New),
					of.NewOps)
			}
			for _, step := range p.Plan {
				fmt.Fprintf(&all, "\t%s\n", step)
			}
		}
	}
	golden.Check(t, filepath.Join("testdata", "messages.txt"), all.Bytes())
}

// TestKinds: the kind of a case is that of its header; tracer cases are those that no catalogue numbers.
func TestKinds(t *testing.T) {
	for b, want := range map[[2]string]string{{"", ""}: "bug", {"1", ""}: "bug", {"1", "tracers"}: "tracer bug", {"",
		"tracers"}: "tracer case",
		{"", "rule"}: "rule", {"1", "proposal"}: "proposal", {"", "hardening"}: "hardening"} {
		if got := (&Bug{Number: b[0], About: b[1]}).Kind(); got != want {
			t.Errorf("%v: %s, want %s", b, got, want)
		}
	}
	b, err := read("f", "name: mine\nmachine:\n arch x86_64\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Model(true); err == nil || !strings.HasPrefix(err.Error(), "bug mine: ") {
		t.Errorf("prepared without CPUs: %v", err)
	}
	b.file, b.sections = "f", nil
	if _, err := b.Model(true); err == nil ||
		err.Error() != `f: no instruction set: want a line such as "arch x86_64" under "machine:"` {
		t.Errorf("%v", err)
	}
	if _, err := Named("nobody"); err == nil || !strings.HasPrefix(err.Error(),
		`bug "nobody": not one of `+All()[0].Name+", ") {
		t.Error(err)
	}
}
