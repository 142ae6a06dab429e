// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/sim"
)

// Two clients want one record: it is switched once, and stays enabled for the second when the
// first wants it no more.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "textpoke-example-")
	check(err)
	defer os.RemoveAll(dir)
	table, err := records.Open(ctx, "gen:n=100", records.Options{})
	check(err)
	arch, err := cpus.ParseArch("x86_64")
	check(err)
	roles, err := cpus.ParseRoles("busy=2")
	check(err)
	store, err := journal.Open(ctx, dir, service.Identity(table))
	check(err)
	defer store.Close()
	s, err := service.Start(ctx, service.Config{
		Table: table, Log: zap.NewNop(), Store: store,
		Machine: service.Simulated(sim.Config{
			Arch: arch, Protocol: "breakpoint", Table: table, Roles: roles, Buffer: sched.Buffer{Slots: 256},
		}, nil),
	})
	check(err)
	defer s.Close()
	for _, r := range []service.Request{
		{Client: "ftrace", Ops: "function", Enable: true, Records: []string{"fn7"}},
		{Client: "perf", Ops: "function", Enable: true, Records: []string{"fn7"}},
		{Client: "ftrace", Ops: "function", Records: []string{"fn7"}},
	} {
		u, err := s.Submit(ctx, r)
		check(err)
		_, err = s.Wait(ctx, u.ID)
		check(err)
	}
	_, wants, err := s.WantedBy("fn7")
	check(err)
	fmt.Println(wants[0].Client, "wants it;", s.Stats().Changes, "change of the text")
	// Output: perf wants it; 1 change of the text
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
