package dispatch

import (
	"testing"

	"github.com/textpoke/textpoke/records"
)

// TestLateCaller: who was on its way to a site's literal when the last tracer was
// detached, and goes on after that, calls nobody.
func TestLateCaller(t *testing.T) {
	sites := []records.Addr{tracee}
	far, single := NewCallOps(sites, Transition, false), NewSingleDirect(sites, Transition, false)
	between, pair := NewIntermediate(sites, Transition), NewSiteTrampoline(sites, Transition)
	code := NewOpsTrampoline(sites, Transition)
	for _, tt := range []struct {
		way  Way
		late func(ctx *Context)
	}{
		{far, func(ctx *Context) { far.through(tracee, far.sites[0].literal.Load(), ctx, 2) }},
		{single, func(ctx *Context) { o := single.sites[0].literal.Load(); o.Func(tracee, o, ctx) }},
		{between, func(ctx *Context) { between.through(tracee, between.sites[0].literal.Load().ops.Load(), ctx, 3) }},
		{pair, func(ctx *Context) {
			if pair.sites[0].direct.Load() != nil {
				t.Error("the trampoline is still there")
			}
			pair.through(tracee, pair.sites[0].ops.Load(), ctx, 2)
		}},
		{code, func(ctx *Context) { code.sites[0].literal.Load().run(tracee, ctx) }},
	} {
		for _, direct := range []bool{true, false} {
			o := &Ops{Func: Hit, Direct: direct}
			if err := tt.way.Attach(o); err != nil {
				t.Fatal(err)
			}
			if err := tt.way.Detach(o); err != nil {
				t.Fatal(err)
			}
			ctx := NewContext()
			if tt.late(ctx); ctx.Hits != 0 || ctx.late != nil {
				t.Errorf("%T, direct %v: %d hits", tt.way, direct, ctx.Hits)
			}
		}
	}
}
