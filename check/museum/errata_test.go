// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"strings"
	"testing"
)

// TestErrata keeps stories away that were once told here and that their sources
// contradict. A bug is what a release or an -rc had; a danger that a check prevents is
// a case, and one that upstream removed before anybody met it is hardening.
func TestErrata(t *testing.T) {
	for _, c := range []struct{ name, kind, versions, says, never string }{
		{"torn-down-descriptor", "bug", "5.3 to 5.5", "285a54efe386", "5.2"},
		{"kprobe-disarm", "bug", "to 5.5", "5c02ece81848", "5.4"},
		{"local-fence-only", "bug", "6.10", "ee9a68394b4b", "e298a843bcfe"},
		{"ipi-in-stop-machine", "bug", "6.4 to 6.9", "for 6.10", "6.8"},
		{"patcher-runs-stale", "bug", "no release had it", "6ca445d8af0e", "6.9"},
		{"online-before-fetch", "rule", "to 6.9", "58661a30f1bc", "until the fix"},
		{"try-get-desc", "bug", "5.7 to 6.0", "efd608fa7403", ""},
		{"literal-misaligned", "tracer case", "none", "Misaligned patch-site", "the 6.3 cycle"},
		{"late-store", "hardening", "none is known", "may pose a risk", "to 6.15,"},
		{"direct-address-kept", "tracer bug", "since 8a141dd7f706", "WARN_ON(!direct)", "ftrace_bug"},
		{"static-call-fixup", "bug", "no mainline -rc", "text_poke_early", "5.19-rc"},
		{"init-text-plt", "bug", "6.5 to 6.16", "3e35d303ab7d", ""},
		{"jump-label-early-return", "bug", "since 706249c222f6", "", ""},
		{"multi-attach-free", "tracer bug", "7.2", "is detached from many functions", "is attached to many"},
	} {
		b, err := Named(c.name)
		if err != nil {
			t.Error(err)
			continue
		}
		text := strings.Join(strings.Fields(b.Versions+" "+b.Source+" "+b.Story+" "+b.Fix), " ")
		if c.kind != b.Kind() || !strings.Contains(b.Versions, c.versions) || !strings.Contains(text, c.says) {
			t.Errorf("%s: a %s of %q: %s", c.name, b.Kind(), b.Versions, text)
		}
		if c.never != "" && strings.Contains(text, c.never) {
			t.Errorf("%s says %q again: %s", c.name, c.never, text)
		}
	}
}
