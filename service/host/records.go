// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/records"
)

// Records is the functions of this machine's kernel that can be traced, in its order. mount is
// where tracefs is.
func Records(ctx context.Context, mount string) (*records.Table, error) {
	t, err := records.Open(ctx, filepath.Join(mount, "available_filter_functions_addrs"), records.Options{}) // since Linux 6.5
	if err != nil {
		t, err = records.Open(ctx, filepath.Join(mount, "available_filter_functions"),
			records.Options{Kallsyms: "/proc/kallsyms"})
	}
	if err != nil {
		return nil, fmt.Errorf("the functions of this kernel: %w", err)
	}
	return t, nil
}

// functions are a table's records as tracefs names them.
func functions(t *records.Table) []tracefs.Function {
	fs := make([]tracefs.Function, t.Len())
	for i := range fs {
		fs[i] = tracefs.Function{Name: t.Symbol(i), Module: t.Module(i)}
	}
	tracefs.Number(fs)
	return fs
}
