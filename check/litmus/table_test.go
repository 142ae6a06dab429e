package litmus

import (
	"context"
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
	// kinds.txt of the catalogue, requirements of hardware.
	{"MP+dmb.st+addrisb-Imp_Instr_R", "AAF"},
	{"MP.FF+dsb-ic-dsb+po", "-FF"},
	{"MP.RF+dc-dmb+ctrl-ic-dsb-isb", "FFF"},
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

// TestOrderOfData asks the best known tests of data alone: what each family
// keeps in order without code being involved.
func TestOrderOfData(t *testing.T) {
	const mp = "data x\ndata y\nthread p\nwrite x 1\n%\nwrite y 1\nthread q\na = read y\n%\nb = read x\noutcome q:a=1 q:b=0\n"
	const sb = "data x\ndata y\nthread p\nwrite x 1\n%\na = read y\nthread q\nwrite y 1\n%\nb = read x\noutcome p:a=0 q:b=0\n"
	const lb = "data x\ndata y\nthread p\na = read x\n%\nwrite y 1\nthread q\nb = read y\n%\nwrite x 1\noutcome p:a=1 q:b=1\n"
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
