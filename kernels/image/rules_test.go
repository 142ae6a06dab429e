// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// withCalls is a kernel with these variables and functions, and what each calls.
func withCalls(variables []string, calls map[string]string) *Kernel {
	var all []vmlinux.Symbol
	for i, v := range variables {
		all = append(all, vmlinux.Symbol{Name: v, Addr: uint64(i)})
	}
	k := &Kernel{Kernel: &vmlinux.Kernel{Symbols: vmlinux.NewSymbols("", all)}, called: map[string]map[string]int{}}
	for f, to := range calls {
		k.Parts[f], k.called[f] = []uint64{1}, map[string]int{to: 1}
	}
	return k
}

// judged is a mechanism after other rules gave some answers, and whether it is known.
func judged(k *Kernel, name string, answers map[string]Answer) string {
	for i := range mechanismRules {
		if r := &mechanismRules[i]; r.Name == name {
			a, known := k.Judge(r, answers)
			return fmt.Sprint(a.Value, " ", known)
		}
	}
	return "no such rule"
}

// TestKeeps: of 6.1 and 6.2 on Ubuntu's and Debian's kernels, and of one that names no data.
func TestKeeps(t *testing.T) {
	for _, c := range []struct {
		variables []string
		rounds    int
		want      string
	}{
		{[]string{"saved_ftrace_func"}, 3, "0 true"},
		{[]string{"saved_ftrace_func", "save_func.4"}, 3, "1 true"},
		{[]string{"saved_ftrace_func", "devfreq_powersave_func"}, 3, "0 true"},
		{nil, 3, "? false"},
		{nil, 0, "0 true"},
	} {
		got := judged(withCalls(c.variables, nil), EntryKept, map[string]Answer{EntryRounds: {fmt.Sprint(c.rounds), ""}})
		if got != c.want {
			t.Errorf("%s, %d rounds: %s, want %s", c.variables, c.rounds, got, c.want)
		}
	}
}

// TestDetaching: the functions and their calls are those of Linux 5.4, 6.1 and 7.2.
func TestDetaching(t *testing.T) {
	const unregister, shutdown, rude = "unregister_ftrace_function", "ftrace_shutdown", "synchronize_rcu_tasks_rude"
	for name, c := range map[string]struct {
		calls map[string]string
		want  string
	}{
		"5.4":     {map[string]string{unregister: shutdown, shutdown: "schedule_on_each_cpu"}, "1 true"},
		"6.1":     {map[string]string{unregister: shutdown, shutdown: rude, rude: "__wait_rcu_gp"}, "1 true"},
		"7.2":     {map[string]string{unregister: shutdown, shutdown: rude, rude: "__x86_return_thunk"}, "0 true"},
		"another": {map[string]string{unregister: shutdown, shutdown: "something_new"}, "? false"},
		"none":    {nil, "0 true"},
	} {
		if got := judged(withCalls(nil, c.calls), DetachWakes, nil); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCopying: what a new BPF trampoline sends where it is copied to its place: arm64 6.12,
// 7.2, riscv64 7.2, x86-64; and whether every CPU stops when one is changed there.
func TestCopying(t *testing.T) {
	const prepare, insert, kick = "arch_prepare_bpf_trampoline", "aarch64_insn_copy", "kick_all_cpus_sync"
	for _, c := range []struct {
		calls map[string]string
		also  string // what prepare calls besides
		want  string
	}{
		{map[string]string{prepare: insert, insert: "__text_poke", "__text_poke": kick, kick: ""}, kick, "2 true 0 true"},
		{map[string]string{prepare: insert, insert: kick, kick: ""}, "", "1 true 0 true"},
		{map[string]string{prepare: "bpf_arch_text_copy", "bpf_arch_text_copy": "patch_text_nosync",
			"patch_text_nosync": "flush_icache_all", "flush_icache_all": "", "bpf_arch_text_poke": "patch_text",
			"patch_text": "stop_machine_cpuslocked", "stop_machine_cpuslocked": ""}, "", "1 true 1 true"},
		{map[string]string{prepare: "kvmalloc", "bpf_arch_text_poke": "text_poke_bp"}, "", "0 true 0 true"},
		{map[string]string{insert: kick, prepare: "", kick: ""}, "", "0 true 0 true"}, // others copy
	} {
		k := withCalls(nil, c.calls)
		if c.also != "" {
			k.called[prepare][c.also] = 1
		}
		if got := judged(k, DirectSyncs, nil) + " " + judged(k, SkipStops, nil); got != c.want {
			t.Errorf("%v: %s, want %s", c.calls, got, c.want)
		}
	}
}

// TestRulesAreOfConstants: there is a rule for each constant, once, and its order is theirs.
func TestRulesAreOfConstants(t *testing.T) {
	source, err := os.ReadFile("mechanism.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, m := range regexp.MustCompile(`= "([a-z-]+)" +//`).FindAllStringSubmatch(string(source), -1) {
		want[m[1]] = true
	}
	for _, r := range mechanismRules {
		if r.Name[0] != '.' && !want[r.Name] {
			t.Errorf("rule %s: no constant, or the second one", r.Name)
		}
		delete(want, r.Name)
	}
	if len(want) > 0 {
		t.Errorf("constants without a rule: %v", want)
	}
}

// TestJudge: the first case holds whose conditions all do; what they find goes into the evidence; an
// answer may be another's; without a case the calls of a function are the reason.
func TestJudge(t *testing.T) {
	k := withCalls([]string{"here"}, map[string]string{"a": "b", "b": "c", "c": "", "lone": ""})
	k.called["lone"] = nil
	answers := map[string]Answer{"other": {"7", "seen"}, "none": {"0", ""}}
	for _, c := range []struct{ cases, want string }{
		{"\t1 if named gone | x\n\t2 if named gone here | y\n\t3 | z\n", "2 true y"},
		{"\t1 if named here and not there a | x\n\t2 if not absent a gone | y", "2 true y"},
		{"\t1 if absent gone lost | x", "1 true x"},
		{"\t1 if leads a 1 c | {way}\n\t2 if leads gone|a 2 d c | {way}", "2 true a calls b calls c"},
		{"\t1 if not leads a 1 c and leads b 1 c and leads a 1 b | {way}", "1 true b calls c"},
		{"\t1 if through a 1 b 1 gone | x\n\t2 if through a 1 b 1 c | {way}", "2 true a calls b calls c"},
		{"\tlet f gone b a\n\t1 if leads {f} 1 c | {f} and {way}", "1 true b and b calls c"},
		{"\tlet f gone\n\t1 if there {f} | x\n\t2 if absent {f} | y", "2 true y"},
		{"\t1 if value none | x\n\tother if value other | {other}", "7 true seen"},
		{"\t1 if value other 6 8 | x\n\t2 if value other 6 7 | y", "2 true y"},
		{"\t1 if unknown other | x\n\t2 if unknown another | y", "2 true y"},
		{"\t1 if variable her | x\n\t2 if variable here | y", "2 true y"},
		{"$those = gone here\n# a comment\n\t1 if named $those | x", "1 true x"},
		{"\tfails a\n\t1 if named gone | x", "? false a calls b"},
		{"\tfails gone\n\t1 if named gone | x", "? false gone is not there"},
		{"\tfails lone\n\t?", "? false lone calls nothing directly"},
		{"\tfails a\n\t? if named here | because", "? false because"},
	} {
		rules := MustRules("name arch | about\n" + c.cases)
		a, ok := k.Judge(&rules[0], answers)
		if got := fmt.Sprint(a.Value, " ", ok, " ", a.Evidence); got != c.want {
			t.Errorf("%q: %s, want %s", c.cases, got, c.want)
		}
		if r := rules[0]; r.Name != "name" || r.Arch != "arch" || r.Doc != "about" || len(rules) != 1 {
			t.Errorf("%+v", r)
		}
	}
	k.called["lone"] = map[string]int{"": 1, "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1}
	if got := k.whatCalled("lone"); got != "lone calls , a, b, c, d, e, f, g, ..." {
		t.Error(got)
	}
}

// TestMistakes: a rule with a condition or a number that there is not is a mistake of ours.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{"name\n\t1 if guessed a | x": `rule name: no condition "guessed"`,
		"name\n\t1 if leads a far b | x": "rules: ", "name\n\t1 if constant zz | x": "rules: "} {
		func() {
			defer func() {
				if said := recover(); said == nil || !strings.HasPrefix(fmt.Sprint(said), want) {
					t.Errorf("%q: %v, want %s", text, said, want)
				}
			}()
			rules := MustRules(text)
			k := withCalls([]string{"_stext", "_etext"}, nil)
			k.Memory = &vmlinux.Memory{}
			k.Judge(&rules[0], nil)
		}()
	}
}
