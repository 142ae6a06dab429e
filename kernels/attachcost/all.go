package attachcost

import (
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// All registers direct ops one after the other: all of them, or none. When one
// fails, those before it are taken away again, the last one first, as a link to
// many functions does that cannot be made (bpf_trampoline_multi_attach, Linux
// 7.2). The error says which one it was; what could not be taken away is joined
// to it.
func All(c *tracers.Core, ops []*tracers.Ops, trampoline func(i int) records.Addr) error {
	for i, o := range ops {
		if _, err := c.RegisterDirect(o, trampoline(i)); err != nil {
			err = fmt.Errorf("attach %d of %d: %w", i+1, len(ops), err)
			for _, done := range slices.Backward(ops[:i]) {
				if _, back := c.UnregisterDirect(done); back != nil {
					err = errors.Join(err, fmt.Errorf("take %s away: %w", done.Name, back))
				}
			}
			return err
		}
	}
	return nil
}
