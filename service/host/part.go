// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/tracefs"
)

// The ops that a kernel is served with, and their places in Ops.
const (
	functionOps = iota
	graphOps
	eventOps
)

// Ops are the ops that clients may ask for, in the order of their numbers (service.Number).
func Ops() []string { return []string{"function", "graph", "event"} }

// tracer is what an ops switches in the kernel: a tracer with a filter, or trace events.
type tracer interface {
	// Held lists the traced functions; all is true for every function.
	Held() (fs []tracefs.Function, all bool, err error)
	// Trace has these on and no others, and tells those that the kernel does not have.
	Trace(want []tracefs.Function) (missing []tracefs.Function, err error)
}

// part is what one ops has in the kernel.
type part struct {
	ops    string
	tracer tracer
	all    []tracefs.Function // by record
	log    *zap.Logger

	want map[int]bool       // the wanted records; never changed, but replaced
	gone []tracefs.Function // those of them that the kernel has lost, at the last change
}

// absent is a tracer that the kernel lacks: it takes nothing.
type absent struct{}

func (absent) Held() ([]tracefs.Function, bool, error) { return nil, false, nil }

func (absent) Trace(want []tracefs.Function) ([]tracefs.Function, error) { return want, nil }

// errAbsent is why absent takes nothing.
var errAbsent = errors.New("instances of this kernel's tracefs cannot have function_graph: they can since Linux 6.11")

// bring has the kernel trace the records that are wanted next; fresh are the new ones. With strict it is an error if the
// kernel does not take a new one.
func (p *part) bring(next map[int]bool, fresh []tracefs.Function, strict bool) (missing []tracefs.Function, err error) {
	missing, err = p.tracer.Trace(p.functions(next))
	refused := both(missing, fresh)
	switch {
	case err != nil || len(refused) == 0 || !strict:
		return missing, err
	case p.tracer == absent{}:
		return missing, errAbsent
	}
	return missing, fmt.Errorf("the kernel did not take %d of %d functions: %s", len(refused), len(fresh), few(refused))
}

// now is bring without a change of the wishes.
func (p *part) now() error {
	missing, err := p.tracer.Trace(p.functions(p.want))
	if err == nil {
		p.lost(missing)
	}
	return err
}

// agree looks whether the kernel still traces what is wanted, tells where somebody else changed it, and makes it agree
// again. Functions that the kernel lost are asked for again: their module may be back.
func (p *part) agree() error {
	held, all, err := p.tracer.Held()
	other := errors.Is(err, tracefs.ErrOther)
	if err != nil && !other {
		return err
	}
	if other || !p.holds(held, all) {
		p.log.Warn("the instance was changed by somebody else, or a module went", zap.String("ops", p.ops),
			zap.Int("functions", len(held)), zap.Bool("all", all), zap.Error(err))
	} else if len(p.gone) == 0 {
		return nil
	}
	return p.now()
}

// holds tells whether the kernel traces exactly the wanted functions that are not gone. A filter does not tell functions
// of one name apart.
func (p *part) holds(held []tracefs.Function, all bool) bool {
	counts := map[tracefs.Function]int{}
	add := func(fs []tracefs.Function, n int) {
		for _, f := range fs {
			f.Nth = 0
			counts[f] += n
		}
	}
	add(held, 1)
	add(p.functions(p.want), -1)
	add(p.gone, 1)
	for _, n := range counts {
		if n != 0 {
			return false
		}
	}
	return !all
}

func (p *part) functions(which map[int]bool) []tracefs.Function {
	return spelling.Each(slices.Sorted(maps.Keys(which)), func(rec int) tracefs.Function { return p.all[rec] })
}

// lost tells of functions that went with their module and are still wanted, once.
func (p *part) lost(missing []tracefs.Function) {
	told := slices.Equal(missing, p.gone)
	if p.gone = missing; len(missing) > 0 && !told {
		p.log.Warn("wanted, and not in the kernel any more", zap.String("ops", p.ops), zap.Int("functions", len(missing)),
			zap.String("such as", few(missing)))
	}
}

func both(a, b []tracefs.Function) (out []tracefs.Function) {
	in := map[tracefs.Function]bool{}
	for _, f := range b {
		in[f] = true
	}
	for _, f := range a {
		if in[f] {
			out = append(out, f)
		}
	}
	return out
}

// few names the first of some functions.
func few(fs []tracefs.Function) string {
	const most = 3
	names := spelling.Each(fs[:min(len(fs), most)], tracefs.Function.String)
	if len(fs) > most {
		names = append(names, fmt.Sprintf("and %d more", len(fs)-most))
	}
	return strings.Join(names, ", ")
}
