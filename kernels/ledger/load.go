// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"embed"
	"io"
	"slices"
	"sync"

	"github.com/textpoke/textpoke/cpus"
)

//go:embed data/*.csv data/*.gz
var data embed.FS

// builtin is the kernels that come with the program. That their files can be read
// is tested: if they cannot, the program is broken.
var builtin = sync.OnceValue(func() *catalogue {
	var c catalogue
	for _, f := range []struct {
		name string
		read func(file string, r io.Reader) error
	}{{"kernels.csv", c.readKernels}, {"rows.csv", c.readRows}, {"ledger.csv", c.readLedger}} {
		b, err := data.ReadFile("data/" + f.name)
		if err == nil {
			err = f.read(f.name, bytes.NewReader(b))
		}
		if err != nil {
			panic(err)
		}
	}
	return &c
})

// catalogue is kernels on their way from files.
type catalogue struct{ kernels []*Kernel }

func (c *catalogue) names() []string {
	out := make([]string, len(c.kernels))
	for i, k := range c.kernels {
		out[i] = k.Name()
	}
	return out
}

func (c *catalogue) named(name string) *Kernel {
	i := slices.Index(c.names(), name)
	if i < 0 {
		return nil
	}
	return c.kernels[i]
}

const kernelsHeader = "kernel,arch,release,default,table,modules_table,protocol,sync_row,stop_row,records_cause,per_batch,per_record,per_update,source"

func (c *catalogue) readKernels(file string, r io.Reader) error {
	s := newSheet(file, r, kernelsHeader)
	for s.next() {
		k := &Kernel{
			Arch: s.name(1), Release: s.name(2), preset: s.yes(3), Table: s.text(4), ModulesTable: s.text(5),
			Protocol: s.name(6), SyncRow: s.name(7), StopRow: s.name(8),
			Records: Records{
				Cause:    causeNamed(s.one(9, cpus.Sync.String(), cpus.Stop.String())),
				PerBatch: s.count(10), PerRecord: s.count(11), PerUpdate: s.count(12), Source: s.name(13),
			},
			ledgers: map[ledgerKey][]Entry{},
		}
		switch {
		case s.cells[0] != k.Name():
			s.fail(0, "kernel", s.cells[0], "its architecture and release make "+k.Name())
		case c.named(k.Name()) != nil:
			s.fail(0, "kernel", k.Name(), "stands there already")
		}
		c.kernels = append(c.kernels, k)
	}
	return s.err
}

const rowsHeader = "kernel,row,modelled,sender_too,about"

func (c *catalogue) readRows(file string, r io.Reader) error {
	s := newSheet(file, r, rowsHeader)
	for s.next() {
		k := c.kernelOf(s)
		if s.err != nil {
			break
		}
		row := Row{Name: s.name(1), Modelled: s.yes(2), SenderToo: s.yes(3), About: s.name(4)}
		if _, twice := k.Row(row.Name); twice {
			s.fail(1, "row", row.Name, "stands there already")
		}
		k.rows = append(k.rows, row)
	}
	return s.err
}

const ledgerHeader = "kernel,scenario,direction,part,cause,row,pokes,rounds_per_poke,after_records,basis,source"

func (c *catalogue) readLedger(file string, r io.Reader) error {
	s := newSheet(file, r, ledgerHeader)
	for s.next() {
		k := c.kernelOf(s)
		if s.err != nil {
			break
		}
		key := ledgerKey{Scenario(s.one(1, scenarioNames(Scenarios())...)), s.one(2, "enable", "disable") == "enable"}
		e := Entry{
			Part: s.name(3), Cause: causeNamed(s.one(4, causeNames()...)), Row: s.name(5),
			Pokes: s.count(6), RoundsPerPoke: s.count(7), AfterRecords: s.yes(8),
			Basis: Basis(s.one(9, string(Counted), string(Sourced), string(Assumed))), Source: s.name(10),
		}
		before := k.ledgers[key]
		switch row, ok := k.Row(e.Row); {
		case !ok || !row.Modelled:
			s.fail(5, "row", e.Row, "no modelled row of "+k.Name())
		case len(before) > 0 && before[len(before)-1].AfterRecords && !e.AfterRecords:
			s.fail(8, "after_records", s.cells[8], "what precedes it follows the records")
		}
		if !slices.Contains(k.order, key.scenario) {
			k.order = append(k.order, key.scenario)
		}
		k.ledgers[key] = append(before, e)
	}
	return s.err
}

// kernelOf is the kernel that a row is of.
func (c *catalogue) kernelOf(s *sheet) *Kernel {
	k := c.named(s.cells[0])
	if k == nil {
		s.fail(0, "kernel", s.cells[0], "no kernel of that name stands in kernels.csv")
	}
	return k
}

func causeNames() []string {
	out := make([]string, cpus.NumCauses)
	for i := range out {
		out[i] = cpus.Cause(i).String()
	}
	return out
}

// causeNamed is the cause of a name that is one.
func causeNamed(name string) cpus.Cause {
	return cpus.Cause(max(0, slices.Index(causeNames(), name)))
}
