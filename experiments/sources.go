// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Source is a table of records with the instruction set that it is of, or, where
// it does not say, the first one.
type Source struct {
	*records.Table
	Arch isa.Arch
}

// Open opens sources as --records names them, all before anything is done with
// any.
func Open(ctx context.Context, names []string, o records.Options) (out []Source, err error) {
	for _, name := range names {
		t, err := records.Open(ctx, name, o)
		if err != nil {
			return nil, err
		}
		arch := t.Arch()
		if arch == "" {
			arch = cpus.ArchNames()[0]
		}
		a, err := cpus.ParseArch(arch)
		if err != nil {
			return nil, err
		}
		out = append(out, Source{t, a})
	}
	return out, nil
}
