// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// TestTimedReplayRefuses: what the timed engine cannot express it refuses by name.
func TestTimedReplayRefuses(t *testing.T) {
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		t.Fatal(err)
	}
	q := &Question{Sites: 2, Patchers: 2, Config: sim.Config{
		Arch: arch, Protocol: "native", Buffer: sched.Buffer{Slots: 4}, Roles: make([]cpus.Role, 3),
	}}
	if err := q.Build(); err != nil {
		t.Fatal(err)
	}
	_, err = ReplayTimed(q.Model, &explore.Trace{})
	if err == nil || !strings.Contains(err.Error(), "one patcher, the trace has 2") {
		t.Errorf("%v", err)
	}
}
