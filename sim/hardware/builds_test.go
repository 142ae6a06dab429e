// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"flag"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

var long = flag.Bool("long", false, "run slow tests")

// TestBuilds runs the tests of what executes plans on this machine as the Go tools can build
// and run them: the handler is outside of what any of it knows.
func TestBuilds(t *testing.T) {
	if !*long {
		t.Skip("slow: -long runs it")
	}
	packages := []string{"github.com/textpoke/textpoke/poke/live", "github.com/textpoke/textpoke/sim/hardware"}
	for _, tt := range []struct {
		name       string
		build, env []string
		run        []string
	}{
		{"race", []string{"-race"}, nil, nil},
		{"pie", []string{"-buildmode=pie"}, nil, nil},
		{"no cgo", nil, []string{"CGO_ENABLED=0"}, nil},
		{"not optimised", []string{"-gcflags=all=-N -l"}, nil, nil},
		{"no preemption", nil, []string{"GODEBUG=asyncpreemptoff=1"}, nil},
		{"collecting", nil, []string{"GOGC=1"}, nil},
		{"checking pointers", []string{"-gcflags=all=-d=checkptr"}, []string{"GODEBUG=cgocheck=1,invalidptr=1"}, nil},
		{"profiled", nil, nil, []string{"-test.cpuprofile=" + filepath.Join(t.TempDir(), "profile")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, p := range packages {
				binary := filepath.Join(t.TempDir(), "test")
				build := exec.Command("go", append(append([]string{"test", "-c", "-o", binary}, tt.build...), p)...)
				build.Env = append(os.Environ(), tt.env...)
				if out, err := build.CombinedOutput(); err != nil {
					if strings.Contains(string(out), "requires cgo") || strings.Contains(string(out), "C compiler") {
						t.Skip(string(out))
					}
					t.Fatalf("%s: %v: %s", p, err, out)
				}
				run := exec.Command(binary, append([]string{"-test.short"}, tt.run...)...)
				run.Env, run.Dir = build.Env, filepath.Join("..", "..", strings.TrimPrefix(p, path.Dir(path.Dir(p))))
				if out, err := run.CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", p, err, out)
				}
			}
		})
	}
}
