// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/records"
)

// Records is what this machine's kernel lets trace.
type Records struct {
	Functions *records.Table // in the kernel's order
	// All is the functions, and behind them the trace events, as GROUP/NAME. Events have no site of their own: their
	// addresses only count them.
	All *records.Table
}

// Read reads them. mount is where tracefs is, with these files.
func Read(ctx context.Context, mount string, files tracefs.Files) (*Records, error) {
	if _, err := os.Stat(filepath.Join(mount, "available_filter_functions")); errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("the kernel has no dynamic ftrace: it needs CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE")
	}
	// The list with addresses is there since Linux 6.5.
	t, err := records.Open(ctx, filepath.Join(mount, "available_filter_functions_addrs"), records.Options{})
	if err != nil {
		t, err = records.Open(ctx, filepath.Join(mount, "available_filter_functions"),
			records.Options{Kallsyms: "/proc/kallsyms"})
	}
	if err != nil {
		return nil, fmt.Errorf("the functions of this kernel: %w", err)
	}
	events, err := tracefs.EventNames(files)
	if err != nil {
		return nil, err
	}
	return join(t, events)
}

func join(t *records.Table, events []string) (*Records, error) {
	raw := make([]records.Raw, 0, t.Len()+len(events))
	for i := range t.Len() {
		raw = append(raw, records.Raw{Addr: t.Addr(i), Symbol: t.Symbol(i), Module: t.Module(i)})
	}
	groups := t.Groups()
	if len(events) > 0 {
		groups = append(slices.Clone(groups), records.Group{First: t.Len(), Last: t.Len() + len(events)})
	}
	for i, name := range events {
		raw = append(raw, records.Raw{Addr: records.Addr(i + 1), Symbol: name})
	}
	all, err := records.New(t.Name(), t.Arch(), raw, groups...)
	return &Records{t, all}, err
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
