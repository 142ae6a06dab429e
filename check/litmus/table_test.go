// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"context"
	"slices"
	"testing"
)

// published is the table of verdicts on arm, typed in from Simner et al.,
// "ARMv8-A system semantics: instruction fetch in relaxed architectures" (ESOP
// 2020), and from aarch64.cat with the catalogue aarch64-ifetch of herdtools7 at
// 5feffe4e8f98. Kinds are for (DIC,IDC) = (0,0), (0,1), (1,1): A allowed, F
// forbidden (what is not listed for a class but forbidden for a weaker one is
// forbidden), - nothing known.
var published = []struct{ test, kinds string }{
	{"coFF", "AAF"},
	{"coFF+cachesync", "FFF"},
	{"SM.B+isb", "AAA"},
	{"SM.B+dsb", "AAA"},
	{"SM.B+dc-dsb", "AAA"},
	{"SM.B+dsb-isb", "AAF"},
	{"SM.B+dc-dsb-isb", "AAF"},
	{"SM.B+dsb-ic-dsb-isb", "AFF"},
	{"SM.B+cachesync-isb", "FFF"},
	{"MP.FF+dmb.st+po", "AAF"},
	{"MP.FF+dsb+po", "AAF"},
	{"MP.FF+dc-dsb+po", "AAF"},
	{"MP.FF+cachesync+po", "FFF"},
	{"MP-inst+cachesync+isb", "FFF"},
	{"MP.FF+dmb.st+cachesync", "AAF"},
	{"MP.FF+dmb.st+cachesync-isb", "FFF"},
	{"MP.FF+dmb.st+ic-dsb-isb", "AFF"},
	{"MP.RF+dmb.st+ctrlisb", "AAF"},
	{"MP.RF+cachesync+ctrlisb", "FFF"},
	{"MP.RF+cachesync+dsb-isb", "FFF"},
	{"MP.RF+cachesync+addr", "AAA"},
	{"miniJit01", "AAA"},
	{"MP.RF+cachesync+switch-ctrl", "AAA"},
	{"miniJit02", "FFF"},
	{"MP.RF+cachesync+switch-ctrlisb", "FFF"},
	{"MP.FR+dmb.st+po", "FFF"},
	{"MP.FR+dmb.st+isb", "FFF"},
	{"MP.FR+dmb.st+ctrlisb", "FFF"},
	{"MP.FR+dsb+po", "FFF"},
	{"MP.FR+dsb+dsb", "FFF"},
	{"MP.FR+dsb+cachesync", "FFF"},
	{"LB.RF+dmb+po", "FFF"},
	{"MP.FW+dmb.st+po", "FFF"},
	{"WRC-inst+ctrlisb", "AAF"},
	{"WRC-inst+dsb-isb", "AAF"},
	{"WRC-inst+cachesync+ctrlisb", "AAF"},
	{"WRC-inst+cachesync+ctrlisb-2", "FFF"},
	{"MP+rel+blr", "A--"},
	{"2SM.B+cachesync-isb", "FFF"},
}

// TestPublished compares the answers with the table, row by row, and not with
// what the files expect, which is compared too.
func TestPublished(t *testing.T) {
	kind := map[byte]Verdict{'A': Allowed, 'F': Forbidden, '-': None}
	for _, p := range published {
		rows, err := shipped(t, p.test).Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(p.kinds) {
			t.Fatalf("%s: %d classes, want %d", p.test, len(rows), len(p.kinds))
		}
		for i, r := range rows {
			want := kind[p.kinds[i]]
			if r.Expected != want {
				t.Errorf("%s on %s: the file expects %s, the table says %s", p.test, r.Class, r.Expected, want)
			}
			if want != None && r.Verdict != want {
				t.Errorf("%s on %s: %s, the table says %s; witness %q", p.test, r.Class, r.Verdict, want, r.Witness)
			}
		}
	}
}

// catalogue is the verdicts of rems-project/litmus-tests-riscv-ifetch (June 2026) under
// its five models, typed in from its kinds files: Ziccif only, Ziccid, a fetch before
// later writes (ir-decode-w), before all later accesses (ir-decode), and before what is
// fetched behind a fence.i (ir3-fetch).
var catalogue = []struct{ test, kinds string }{
	{"3.LB.FFF", "AFFFA"},
	{"3.SB.FFF+fencei+fencei+fencei", "FFFFF"},
	{"3.SB.FFF+fencei+fencei+po", "AAAAA"},
	{"CoFF", "AFAAA"},
	{"CoFF+fencei", "AFAAF"},
	{"CoFF+load-fencei", "FFFFF"},
	{"CoFR", "AFAFA"},
	{"CoFR+fencei", "AFAFF"},
	{"CoFR+load-fencei", "FFFFF"},
	{"CoFW", "AFFFA"},
	{"CoRF", "AAAAA"},
	{"CoRF+fencei", "FFFFF"},
	{"ISA2.F+fence.w.w+fence.r.w+fencei", "FFFFF"},
	{"ISA2.F+fence.w.w+fence.r.w+po", "AAAAA"},
	{"ISA2.F.FF+fence.w.w+po+po", "AFAAA"},
	{"LB.FF", "AFFFA"},
	{"LB.RF+fence.r.w", "AFFFA"},
	{"MP+fence.w.w+fencei", "FFFFF"},
	{"MP+fencei+fence.r.r", "FFFFF"},
	{"MP+irf+data+fence.r.r", "AFFFA"},
	{"MP+irf+fence.r.r", "AFFFA"},
	{"MP.F+fence.w.w+patched-load", "FFFFF"},
	{"MP.FF", "AFAAA"},
	{"MP.FF+fencei", "AFAAF"},
	{"MP.FF+jump", "AFAAA"},
	{"MP.FF+jump-fencei", "AFAAF"},
	{"MP.FF+jump-load-fencei", "AFAFF"},
	{"MP.FF+jump-store-fencei", "AFFFF"},
	{"MP.FF+load-fence.rw.rw", "AFAAA"},
	{"MP.FF+load-fencei", "FFFFF"},
	{"MP.FF+load-patched-fence.i", "AFAAA"},
	{"MP.FF+lw-fencei", "AFAFF"},
	{"MP.FF+patched-fence.i", "AFAAF"},
	{"MP.FR+fence.w.w+fencei", "AFAFF"},
	{"MP.FR+fence.w.w+load-addr", "FFFFF"},
	{"MP.FR+fence.w.w+po", "AFAFA"},
	{"MP.FR+fence.w.w+reg-addr", "AFAFA"},
	{"MP.FR+patched-fence.r.r", "AFAFA"},
	{"MP.RF+fence.r.r+fencei", "AAAAA"},
	{"MP.RF+fence.w.w+ctrl-jr", "AAAAA"},
	{"MP.RF+fence.w.w+fencei", "FFFFF"},
	{"MP.RF+fencei-fence.w.w+fence.r.r", "AAAAA"},
	{"MP.RFR+patched-fence.r.r", "FFFFF"},
	{"SB.F+addr+fence.rw.rw", "AFAFA"},
	{"SB.F+ctrl+fence.rw.rw", "AFAFA"},
	{"SB.FF", "AAAAA"},
	{"SB.FF+fencei+fencei", "FFFFF"},
	{"SB.RF+fence.w.r+fencei", "FFFFF"},
	{"SB.RF+fence.w.r+po", "AAAAA"},
	{"SB.RF+fencei+fencei", "FFFFF"},
	{"SB.RF+fencei+po", "AAAAA"},
	{"SM", "AAAAA"},
	{"SM+RW", "AAAAA"},
	{"SM+RW+RW", "FFFFF"},
	{"SM+fence.rw.rw", "AAAAA"},
	{"SM+fencei", "FFFFF"},
	{"W+F", "AAAAA"},
	{"WRC.F.FF", "AFAAA"},
	{"WRC.F.FF+load-fencei+load-fencei", "FFFFF"},
	{"WRC.F.RF+po+fencei", "AFFFA"},
	{"WRC.F.RR+po+fence.r.r", "AFFFA"},
	{"WW+FW+fence.w.w+po", "AFFFA"},
	{"WW+WF+fence.w.w+fencei", "FFFFF"},
	{"WW+WF+fence.w.w+po", "AAAAA"},
}

// catalogueClasses are the five models' classes.
var catalogueClasses = []string{"rv(ziccif)", "rv(ziccid)", "rv(decode-w)", "rv(decode)", "rv(ir3)"}

// TestCatalogue compares every answer with the catalogue's. One test differs: it needs
// a hart that reads its own store before others see it.
func TestCatalogue(t *testing.T) {
	agree, differ := 0, 0
	for _, c := range catalogue {
		rows, err := shipped(t, "ifetch-"+c.test).Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			want := map[byte]Verdict{'A': Allowed, 'F': Forbidden}[c.kinds[slices.Index(catalogueClasses, r.Class)]]
			if r.Expected != want {
				t.Errorf("%s on %s: the file expects %s, the catalogue says %s", c.test, r.Class, r.Expected, want)
			}
			switch {
			case r.Verdict == want:
				agree++
			case c.test == "SM+RW" && r.Differs != "":
				differ++
			default:
				t.Errorf("%s on %s: %s, the catalogue says %s; witness %q", c.test, r.Class, r.Verdict, want, r.Witness)
			}
		}
	}
	if len(catalogue) != 64 || agree != 315 || differ != 5 {
		t.Errorf("of %d tests %d rows agree and %d differ, want 64, 315 and 5", len(catalogue), agree, differ)
	}
}

// TestOrderOfData asks the best known tests of data alone: what each family
// keeps in order without code being involved.
func TestOrderOfData(t *testing.T) {
	const mp = "data x\ndata y\nthread p\nwrite x 1\n%\nwrite y 1\nthread q\na = read y\n%\nb = read x\noutcome q:a=1 " +
		"q:b=0\n"
	const sb = "data x\ndata y\nthread p\nwrite x 1\n%\na = read y\nthread q\nwrite y 1\n%\nb = read x\noutcome p:a=0 " +
		"q:b=0\n"
	const lb = "data x\ndata y\nthread p\na = read x\n%\nwrite y 1\nthread q\nb = read y\n%\nwrite x 1\noutcome p:a=1 " +
		"q:b=1\n"
	for _, c := range []struct {
		shape, first, second, class string
		want                        Verdict
	}{
		{mp, "", "", "arm(1,1)", Allowed},
		{mp, "dmb.st", "", "arm(1,1)", Allowed},
		{mp, "", "dmb.ld", "arm(1,1)", Allowed},
		{mp, "dmb.st", "dmb.ld", "arm(1,1)", Forbidden},
		{mp, "dmb", "dsb", "arm(0,0)", Forbidden},
		{mp, "dmb.ld", "dmb.st", "arm(0,0)", Allowed},
		{mp, "dmb", "ctrl a", "arm(1,1)", Allowed}, // reads are done on a guess
		{mp, "dmb", "ctrl a\nisb", "arm(1,1)", Forbidden},
		{mp, "", "", "rv(ziccif)", Allowed},
		{mp, "fence", "fence", "rv(ziccif)", Forbidden},
		{mp, "", "", "intel", Forbidden},
		{sb, "", "", "intel", Allowed},
		{sb, "mfence", "", "intel", Allowed},
		{sb, "mfence", "lock", "amd", Forbidden},
		{sb, "serialise", "serialise", "amd", Forbidden},
		{sb, "dmb.st", "dmb.ld", "arm(1,1)", Allowed},
		{sb, "dmb", "dmb", "arm(1,1)", Forbidden},
		{sb, "fence", "fence", "rv(plain)", Forbidden},
		{lb, "", "", "arm(1,1)", Allowed},
		{lb, "ctrl a", "ctrl b", "arm(1,1)", Forbidden}, // no write is done on a guess
		{lb, "dmb.ld", "dmb.ld", "arm(1,1)", Forbidden},
		{lb, "", "", "rv(plain)", Allowed},
		{lb, "", "", "amd", Forbidden},
	} {
		test := parse(t, "test t\n"+fill(c.shape, c.first, c.second)+"expect none "+c.class+"\n")
		rows, err := test.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if rows[0].Verdict != c.want {
			t.Errorf("%s, want %s of\n%s", rows[0].Verdict, c.want, test)
		}
	}
}

// TestAcquireRelease: the two order what the marks say, no more.
func TestAcquireRelease(t *testing.T) {
	for _, c := range []struct {
		release, acquire string
		want             Verdict
	}{{"", "", Allowed}, {" release", "", Allowed}, {"", " acquire", Allowed}, {" release", " acquire", Forbidden}} {
		for _, class := range []string{"arm(0,0)", "rv(plain)"} {
			test := parse(t, "test t\ndata x\ndata y\nthread p\nwrite x 1\nwrite y 1"+c.release+
				"\nthread q\na = read y"+c.acquire+"\nb = read x\noutcome q:a=1 q:b=0\nexpect none "+class+"\n")
			rows, err := test.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if rows[0].Verdict != c.want {
				t.Errorf("%s, want %s of\n%s", rows[0].Verdict, c.want, test)
			}
		}
	}
}
