// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// TestPathsWithoutRule: a path that virtual time has no rule for is refused by name.
func TestPathsWithoutRule(t *testing.T) {
	for _, c := range []struct {
		arch string
		with []cpus.Variant
		want string
	}{
		{"x86_64", nil, ""},
		{"arm64", []cpus.Variant{cpus.SiteApart, cpus.MissFatal}, ""},
		{"x86_64", []cpus.Variant{cpus.EntryCatchesUp}, ""},
		{"x86_64", []cpus.Variant{cpus.EntryEarly},
			`no rule for the path "entry: call a site; enter; catch up": want "enter; catch up"`},
		{"arm64", []cpus.Variant{cpus.SiteCalls}, `no rule for the path "site: fetch site; call": nothing reads`},
	} {
		arch, err := cpus.ParseArch(c.arch)
		if err != nil {
			t.Fatal(err)
		}
		site, err := arch.Site(0x1004, isa.Word)
		if err != nil {
			t.Fatal(err)
		}
		code := &cpus.Code{Arch: arch, Traits: arch.Traits(), Len: int(site.Len)}
		code.Path = cpus.NativePath(code.Traits, code.Len, false)
		for _, v := range c.with {
			code.Path = code.Path.With(v)
		}
		if err := expressible(code); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %v: %v, want %q", c.arch, c.with, err, c.want)
		}
	}
}
