// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestOf reads the information of builds from a tag, from a changed tree, and of
// none.
func TestOf(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef01234567"
	module := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	clean, dirty := debug.BuildSetting{Key: "vcs.modified", Value: "false"}, debug.BuildSetting{Key: "vcs.modified",
		Value: "true"}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: hash}
	for _, tt := range []struct {
		info              *debug.BuildInfo
		version, revision string
		line              string
	}{
		{module("v1.2.3", commit, clean), "v1.2.3", "0123456789ab", "textpoke v1.2.3 0123456789ab "},
		{module("v1.2.4-0.20260101000000-0123456789ab+dirty", commit, dirty), "v1.2.4-0.20260101000000-0123456789ab+dirty",
			"0123456789ab+", "textpoke v1.2.4-0.20260101000000-0123456789ab+dirty 0123456789ab+ "},
		{module("(devel)"), "(devel)", "", "textpoke (devel) "},
		{module(""), "(devel)", "", "textpoke (devel) "},
		{nil, "(devel)", "", "textpoke (devel) "},
	} {
		platform := runtime.GOOS + "/" + runtime.GOARCH
		want := Program{Version: tt.version, Revision: tt.revision, Go: runtime.Version(), Platform: platform}
		if got := of(tt.info); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got, want := of(tt.info).Line("textpoke"), tt.line+runtime.Version()+" "+platform+"\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
