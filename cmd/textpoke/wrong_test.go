// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wrong is command lines that are wrong, and what the one line on stderr says.
// @ stands for the directory that wrongFiles made.
var wrong = []struct{ line, want string }{
	{"nosuch", `no command "textpoke nosuch"`},
	{"plna", `did you mean plan?`},
	{"records shwo", `no command "textpoke records shwo"; did you mean show?`},
	{"interrupts nosuch", `no command "textpoke interrupts nosuch"`},
	{"completion nosuch", `no command "textpoke completion nosuch"`},
	{"help nosuch", `no command "textpoke nosuch"`},
	{"plan extra", `"extra": textpoke plan takes no arguments`},
	{"run extra", `"extra": textpoke run takes no arguments`},
	{"version extra", `takes no arguments`},
	{"records list extra", `takes no arguments`},
	{"records show", `usage: textpoke records show SRC`},
	{"records show a b", `usage: textpoke records show SRC`},
	{"records convert", `usage: textpoke records convert SRC`},
	{"interrupts diff a", `usage: textpoke interrupts diff BEFORE AFTER`},
	{"interrupts sample", `usage: textpoke interrupts sample -- COMMAND`},

	{"plan --recrods x", `no flag --recrods; did you mean --records?`},
	{"plan -x", `unknown shorthand flag`},
	{"plan --arch", `flag needs an argument: --arch`},
	{"plan --arch x86", `--arch "x86": not one of x86_64, arm64, riscv64; did you mean x86_64?`},
	{"plan --arch=", `--arch: empty list`},
	{"plan --arch x86_64,", `--arch "": not one of`},
	{"run --arch arm", `did you mean arm64?`},
	{"plan --protocol nativ", `did you mean native?`},
	{"plan --protocol stop_machine", `did you mean stop-machine?`},
	{"plan --protocol=", `--protocol: empty list`},
	{"plan --buffer 0", `--buffer "0": want a number of slots from 1`},
	{"plan --buffer -1", `--buffer "-1": want a number of slots`},
	{"plan --buffer 99999999999999999999", `--buffer "99999999999999999999": want`},
	{"plan --buffer 1.5", `--buffer "1.5": want`},
	{"plan --buffer dynamc", `did you mean dynamic?`},
	{"plan --buffer=", `--buffer: empty list`},
	{"plan --order sort", `did you mean sorted?`},
	{"plan --order=", `--order: empty list`},
	{"plan --lookup tree", `did you mean btree?`},
	{"plan --lookup=", `--lookup: empty list`},
	{"plan --refs per-cpu", `did you mean percpu?`},
	{"plan --fetch atomc", `did you mean atomic?`},
	{"plan --fetch=", `--fetch: empty list`},
	{"plan --mutate drop-sync", `did you mean drop-sync-1?`},
	{"plan --mutate=", `--mutate: empty list`},
	{"plan --arch arm64 --mutate drop-sync-1", `it offers no-fence`},
	{"plan --cpus 0", `--cpus "0": want 1 to 8192`},
	{"plan --cpus -3", `--cpus "-3": the number of CPUs must be`},
	{"plan --cpus 9999999", `--cpus "9999999": more than 8192 CPUs`},
	{"plan --cpus 99999999999999999999", `--cpus "99999999999999999999": want a number of CPUs`},
	{"plan --cpus offline=3", `--cpus "offline=3": at least one CPU must be busy`},
	{"plan --cpus isolated=3", `--cpus "isolated=3": at least one CPU must be busy`},
	{"plan --cpus bussy=3", `did you mean busy?`},
	{"plan --cpus busy=2,idle", `"idle": want a number of CPUs or ROLE=NUMBER`},
	{"plan --cpus 2,,4", `--cpus "": want`},
	{"plan --cpus=", `--cpus "": want`},
	{"plan --seed -1", `--seed "-1": want a whole number from 0 to 18446744073709551615`},
	{"plan --seed 18446744073709551616", `--seed "18446744073709551616": want a whole number`},
	{"plan --seed abc", `--seed "abc": want a whole number`},
	{"plan --seed=", `--seed "": want a whole number`},
	{"plan --format xml", `--format "xml": not one of table, csv, json`},
	{"plan --format tabel", `did you mean table?`},
	{"plan --format=", `--format "": not one of`},
	{"plan --log loud", `--log "loud": not one of debug, info, warn, error`},
	{"plan --log=", `--log "": not one of`},
	{"plan --steps=maybe", `--steps "maybe": want true or false`},
	{"plan --filter=", `--filter "": empty`},
	{"plan --filter nosuch_*", `nothing to patch: the filter leaves no record`},
	{"run --filter nosuch_*", `nothing to patch: the filter leaves no record`},
	{"plan --kallsyms=", `--kallsyms "": want a name`},
	{"kernel predict x86_64-6.12 --action fentry:nosuch", `filter "nosuch": no record matches`},
	{"kernel predict x86_64-6.12 --action fexit:nosuch", `filter "nosuch": no record matches`},
	{"kernel predict x86_64-6.12 --action fentry:vfs_*", `function "vfs_*": want one name`},
	{"kernel predict x86_64-6.12 --action kprobe:*", `function "*": want one name`},
	{"kernel predict x86_64-6.12 --action=", `--action: want at least one; --action list prints them`},
	{"kernel predict x86_64-6.12 arm64-6.12", `usage: textpoke kernel predict IMAGE`},
	{"kernel measure @/junk -- true", `a command behind -- goes with --here`},
	{"plan --kallsyms @/nosuch", `--kallsyms: stat`},
	{"records show gen:n=1 --kallsyms @", `--kallsyms: it is a directory`},

	{"plan --plan @/big.plan", `big.plan:8193: more than 65536 bytes`},
	{"plan --plan @/empty", `empty:1: no name: the file needs a line such as "name: my-protocol"`},
	{"plan --plan @/junk", `junk:1: '\x00': a control character`},
	{"run --plan @/header.csv", `header.csv:1: "address,symbol,module,group": a step outside of every section`},

	{"run --for 0", `--for "0": want a time above 0`},
	{"run --for -1s", `--for "-1s": want a time above 0`},
	{"run --for 5", `--for "5": want a time such as`},
	{"run --for 9999999999h", `--for "9999999999h": want a time such as`},
	{"run --for=", `--for "": want a time such as`},
	{"run --without fail", `--without goes with --for`},
	{"run --without=", `--without "": not one of`},
	{"run --for 1s --without=", `--without "": not one of`},
	{"run --for 1s --without unplugg", `did you mean unplug?`},
	{"run --engine life", `did you mean live?`},
	{"run --engine=", `--engine: empty list`},
	{"run --arch x86_64 --records gen:n=3000,spacing=1048576,base=0x40000000 --format csv", `cannot reach`},
	{"run --interrupts --format csv", `--interrupts goes with --format table`},
	{"run --interrupts --for 1s", `--interrupts goes without --for`},

	{"plan --records=", `records "": no such file`},
	{"plan --records @/nosuch", `no such file and no such table`},
	{"plan --records x86_64-6.1", `did you mean x86_64-6.12?`},
	{"plan --records @", `a directory, not a file of records`},
	{"plan --records @/empty", `empty: empty`},
	{"plan --records @/truncated.gz", `cut short`},
	{"plan --records @/junk", `not text, not ELF, not a kernel image, and not packed in a known way`},
	{"plan --records @/duplicate.csv", `duplicate.csv:3: address "0xffffffff81000010": already on line 2`},
	{"run --records @/header.csv", `header.csv`},
	{"plan --records @/functions", `kallsyms`},
	{"run --records @/unaligned.csv --arch arm64", `unaligned.csv`},
	{"plan --records x86_64-6.12 --arch arm64", `records x86_64-6.12 are of x86_64, not of arm64`},
	{"run --records @/program --arch arm64,riscv64", `program`},
	{"run --records gen:n=0", `nothing to patch`},
	{"plan --records gen:n=-1", `n "-1": not a number from 0`},
	{"plan --records gen:n=1e12", `n "1e12": not a number from 0`},
	{"plan --records gen:m=3", `key "m": unknown`},
	{"plan --records gen:n=3,n=4", `key "n": given twice`},
	{"plan --records gen:order=tabel", `order`},

	{"records show @/empty", `empty: empty`},
	{"records show gen:n=3 --arch arm", `did you mean arm64?`},
	{"records show gen:n=3 --arch=", `--arch "": not one of`},
	{"records convert gen:n=3 --to xml", `--to "xml": not one of csv, addrs`},
	{"records convert gen:n=3 --to=", `--to "": not one of csv, addrs`},
	{"records convert gen:n=3 --format json", `--format json: the format of convert is chosen by --to`},

	{"interrupts diff @/nosuch @/nosuch", `no such file`},
	{"interrupts diff @ @", `is a directory`},
	{"interrupts diff @/empty @/empty", `the text is empty`},
	{"interrupts diff @/junk @/row", `junk:1: "\x00": a control character`},
	{"interrupts diff @/row @/row", `there is no diff`},
	{"interrupts diff @/row @/row2 --row NOPE", `"NOPE": there is no such row`},
	{"interrupts diff @/row @/row2 --row=", `--row "": want the name of a row`},
	{"interrupts diff @/row @/row2 --slots 0", `--slots "0": want a whole number, 1 or more`},
	{"interrupts diff @/row @/row2 --slots -1", `--slots "-1": want a whole number, 1 or more`},
	{"interrupts diff @/row @/row2 --slots x", `--slots "x": want a whole number`},
	{"interrupts diff @/row @/row2 --slots 9223372036854775807", `too many`},
	{"interrupts diff @/row @/row2 --other 5", `--other goes with --slots`},
	{"interrupts diff @/row @/row2 --slots 9 --other 5-3", `--other "5-3": want a number of rounds`},
	{"interrupts diff @/row @/row2 --slots 9 --other -5", `--other "-5": want a number of rounds`},
	{"interrupts diff @/row @/row2 --slots 9 --other=", `--other "": want a name`},
	{"interrupts diff @/row @/row2 --slots 9 --other 99999999999999999999", `want a number of rounds`},
	{"interrupts sample -- @/nosuch", `no such file`},
}

// wrongFiles makes files that are no good.
func wrongFiles(t *testing.T) string {
	dir := t.TempDir()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(done(t, "records", "convert", "gen:n=3000"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	const header = "address,symbol,module,group\n"
	for name, text := range map[string]string{
		"empty":         "",
		"truncated.gz":  packed.String()[:packed.Len()/2],
		"junk":          "\x00\x01\x02\xff\xfejunk",
		"duplicate.csv": header + "0xffffffff81000010,a,,\n0xffffffff81000010,b,,\n",
		"header.csv":    header,
		"unaligned.csv": header + "0xffffffff81000011,a,,\n",
		"functions":     "first\nsecond\n",
		"big.plan":      strings.Repeat("# 45678\n", 9000),
		"program":       string(program),
		"row":           "CAL: 1 2 3 Function call interrupts\n",
		"row2":          "CAL: 7 2 9 Function call interrupts\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestWrong holds that a wrong request ends with exit code 2, says so in one
// line, and leaves stdout and --out empty.
func TestWrong(t *testing.T) {
	dir := wrongFiles(t)
	for _, test := range wrong {
		t.Run(test.line, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			line := strings.Fields(strings.ReplaceAll(test.line, "@", dir))
			refuse(t, test.want, append([]string{"--out", out}, line...)...)
			if files, _ := os.ReadDir(out); len(files) > 0 {
				t.Errorf("--out has %d files", len(files))
			}
		})
	}
}

// refuse checks that a command line is refused as it should be.
func refuse(t *testing.T, want string, args ...string) {
	t.Helper()
	r := textpoke(t, args...)
	if r.code != exitWrong {
		t.Errorf("exit code %d", r.code)
	}
	if r.out != "" {
		t.Errorf("stdout: %.500s", r.out)
	}
	if strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "textpoke: ") || !strings.HasSuffix(r.err, "\n") {
		t.Errorf("stderr is not one line: %q", r.err)
	}
	if !strings.Contains(r.err, want) {
		t.Errorf("stderr says %q and not %q", r.err, want)
	}
}

// TestWrongOut holds the same of directories that cannot be.
func TestWrongOut(t *testing.T) {
	dir := wrongFiles(t)
	for _, command := range []string{"plan", "plan --steps", "run", "version", "records list", "records show gen:n=3",
		"records convert gen:n=3", "interrupts diff @/row @/row2", "interrupts sample -- true"} {
		args := strings.Fields(strings.ReplaceAll(command, "@", dir))
		for out, want := range map[string]string{
			"":                `--out "": want a name`,
			dir + "/row":      "it is a file",
			dir + "/row/x":    "not a directory",
			"/proc/self/x":    "output directory /proc/self/x",
			"/proc/self/fd/x": "output directory /proc/self/fd/x",
		} {
			t.Run(command+" "+out, func(t *testing.T) {
				refuse(t, want, append([]string{"--out=" + out}, args...)...)
			})
		}
	}
}
