package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// tracerFlags is the flags that say who is called by enabled sites, and how.
type tracerFlags struct {
	dispatch []string
	tracers  string
}

func (t *tracerFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&t.dispatch, "dispatch", nil, "`list` of ways from enabled sites to their tracers: "+strings.Join(dispatch.Names(), ", "))
	offer(cmd, "dispatch", dispatch.Names())
	f.StringVar(&t.tracers, "tracers", "relevant=1", "`numbers` of tracers of the functions that are called, and of one that nobody calls, such as relevant=1,irrelevant=100")
}

// read checks the flags and puts what they ask for into the grid.
func (t *tracerFlags) read(cmd *cobra.Command, grid *sim.Grid) (err error) {
	changed := cmd.Flags().Changed
	switch {
	case !changed("dispatch") && changed("tracers"):
		return fmt.Errorf("--tracers goes with --dispatch: without a way to them nobody is called")
	case !changed("dispatch"):
		return nil
	case changed("for"):
		return fmt.Errorf("--dispatch goes without --for: clients of a stress run are not told apart")
	}
	if grid.Dispatch, err = namedList("dispatch", t.dispatch, dispatch.Names(), dispatch.Parse); err != nil {
		return err
	}
	if grid.Tracers, err = sim.ParseTracers(t.tracers); err != nil {
		return fmt.Errorf("--tracers %w", err)
	}
	return nil
}
