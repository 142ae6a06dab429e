// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/host"
	"github.com/textpoke/textpoke/sim"
)

// servedMachine is the machine that is served.
type servedMachine struct {
	table   *records.Table
	machine service.Maker
	ops     []string // nil for any
	cpus    string
	files   tracefs.Files // of a kernel that is served
}

// simulated is a machine of sim's. A table says which architecture it is of; one that
// does not is of the first.
func (s *serveFlags) simulated(cmd *cobra.Command) (*servedMachine, error) {
	choices := chosen(s.asked, serveAxes)
	choices["seed"] = []string{fmt.Sprint(s.seeds[0])}
	for _, a := range serveAxes {
		if choices[a.Name] == nil && a.Default != "" && (a.Name != "arch" || choices["records"] == nil) {
			choices[a.Name] = []string{a.Default}
		}
	}
	grid, err := sim.NewGrid(sim.UseLive, choices, records.Options{})
	if err != nil {
		return nil, err
	}
	if several := grid.Several(); several["cpus"] || several["table"] {
		return nil, errors.New("--records, --cpus: want one table and one machine")
	}
	s.note(grid.Files()...)
	configs, err := s.combinations(cmd.Context(), grid)
	if err != nil {
		return nil, err
	}
	c := configs[0]
	return &servedMachine{c.Table, service.Simulated(c, nil), nil, cpus.FormatRoles(c.Roles), nil}, nil
}

// onKernel is the machine that is this machine's kernel, and no simulated one.
const onKernel = "kernel"

func (s *serveFlags) machine(cmd *cobra.Command) (*servedMachine, error) {
	if s.on == onKernel {
		return s.host(cmd.Context())
	}
	return s.simulated(cmd)
}

// files is this machine's tracefs, and where it is.
func (s *serveFlags) files() (files tracefs.Files, mount string, err error) {
	mount, err = tracefs.Mount()
	files = tracefs.At(mount)
	if s.dryRun {
		files = tracefs.Trial(files, s.streams.out)
	}
	return files, mount, err
}

// host is this machine's kernel.
func (s *serveFlags) host(ctx context.Context) (*servedMachine, error) {
	files, mount, err := s.files()
	if err != nil {
		return nil, err
	}
	r, err := host.Read(ctx, mount, files)
	if err != nil {
		return nil, err
	}
	c := host.Config{Files: files, Instance: s.instance, Records: r}
	if c.Lock, err = files.Lock("instances/" + s.instance); errors.Is(err, fs.ErrNotExist) {
		c.Lock, err = nil, s.mayMake(filepath.Join(mount, "instances")) // it is made when nothing else can be refused
	}
	if err != nil {
		return nil, fmt.Errorf("instance %s: %w", s.instance, err)
	}
	if c.Kernel, c.State, err = s.image(); err != nil {
		return nil, err
	}
	return &servedMachine{r.All, host.Machine(c), host.Ops(), "this machine's", files}, nil
}

// mayMake tells whether this process may make an instance in a folder.
func (s *serveFlags) mayMake(instances string) error {
	if s.dryRun {
		return nil
	}
	if err := unix.Faccessat(unix.AT_FDCWD, instances, unix.W_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("it is not there, and cannot be made in %s: %w", instances, err)
	}
	return nil
}

// bootNote is a file beside the data, with a boot_id (random(4)) and the instance that a server has used since then.
type bootNote struct{ file, text string }

// write keeps a note; the zero one, and one that is kept already, are not written.
func (n bootNote) write() error {
	if n.text == "" {
		return nil
	}
	return os.WriteFile(n.file, []byte(n.text), 0o600)
}

// boot is what to note of a kernel that is served. It tells whether the machine was booted since the last server with the
// same directory. An instance that traces though none of them has made it since is somebody else's: a boot leaves none.
func (s *serveFlags) boot(idFile string, files tracefs.Files, log *zap.Logger) (n bootNote, err error) {
	if s.on != onKernel || s.dryRun {
		return n, nil
	}
	id, err := os.ReadFile(idFile)
	if err != nil {
		return n, err
	}
	file, text := filepath.Join(s.data, "textpoke.boot"), string(id)+s.instance
	last, err := os.ReadFile(file)
	if string(last) == text || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return n, err
	}
	for _, name := range []string{s.instance, s.instance + ".graph"} {
		if tracefs.Busy(files, "instances/"+name+"/") {
			return n, fmt.Errorf("instance %s traces, and no server with --data %s has made it since the machine was booted: "+
				"--instance names another, and --release takes this one away", name, s.data)
		}
	}
	if err == nil && !bytes.HasPrefix(last, id) {
		log.Warn("the machine was booted since the last server: the kernel has forgotten what clients want, and is told again")
	}
	return bootNote{file, text}, nil
}

// imagePlaces are where distributions put a release's image.
var imagePlaces = []string{"/boot/vmlinuz-%s", "/lib/modules/%s/vmlinuz"}

// image is this kernel's image, with the facts that hold in it already; nil where none is named
// and none can be read where distributions put it.
func (s *serveFlags) image() (*ledger.Kernel, []string, error) {
	name := s.kernel
	if name == "" {
		release, err := os.ReadFile("/proc/sys/kernel/osrelease")
		if err != nil {
			return nil, nil, err
		}
		for _, place := range imagePlaces {
			file := fmt.Sprintf(place, strings.TrimSpace(string(release)))
			if unix.Access(file, unix.R_OK) == nil {
				name = file
				break
			}
		}
	}
	if name == "" {
		s.serverLog().Info("no forecasts: --kernel names no image, and none can be read", zap.Strings("where", imagePlaces))
		return nil, nil, nil
	}
	k, err := ledger.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("--kernel: %w", err)
	}
	state, err := k.Here("/")
	if err != nil {
		return nil, nil, fmt.Errorf("--kernel %s: %w", name, err)
	}
	return k, state, nil
}

// releaseInstance leaves the kernel without the instance.
func (s *serveFlags) releaseInstance() error {
	files, _, err := s.files()
	if err != nil {
		return err
	}
	i, err := tracefs.Open(files, s.instance)
	if err != nil {
		return err
	}
	held, err := files.Lock("instances/" + s.instance)
	if err != nil {
		return fmt.Errorf("instance %s: %w", s.instance, err)
	}
	graph, _, err := i.Graph()
	if err == nil {
		err = graph.Release()
	}
	return errors.Join(err, i.Release(), held.Close())
}
