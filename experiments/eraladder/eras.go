// SPDX-License-Identifier: Apache-2.0

package eraladder

import (
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

//go:embed eras.csv plans/*.plan
var data embed.FS

// era is how one architecture changed one kind of sites in some releases.
type era struct {
	Arch     isa.Arch
	Client   string // who patches: ftrace, jump label
	From, To string // releases; From is "" where nobody has looked, To where it lasts
	Protocol *poke.Protocol
	Buffer   sched.Buffer
	Formula  string // of rounds for n sites
	Stops    int
	Basis    string // source: read in the kernel's; commit: in a commit message or a mail; inferred
	Source   string
}

// Releases is when.
func (e *era) Releases() string {
	switch {
	case e.From == "":
		return "to " + e.To
	case e.To == "":
		return "since " + e.From
	case e.From == e.To:
		return "in " + e.From
	}
	return e.From + " to " + e.To
}

// formulas are how many rounds n sites take, as they are written down.
var formulas = map[string]func(n int) int{
	"0":             func(int) int { return 0 },
	"1":             func(int) int { return 1 },
	"3":             func(int) int { return 3 },
	"n":             func(n int) int { return n },
	"n+1":           func(n int) int { return n + 1 },
	"3*n":           func(n int) int { return 3 * n },
	"3*ceil(n/128)": func(n int) int { return 3 * ((n + 127) / 128) },
	"3*ceil(n/170)": func(n int) int { return 3 * ((n + 169) / 170) },
	"3*ceil(n/256)": func(n int) int { return 3 * ((n + 255) / 256) },
}

// eras reads the ladder, the oldest era of each architecture first.
func eras() (out []era, err error) {
	f, err := data.Open("eras.csv")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("eras.csv: %w", err)
	}
	for i, r := range records[1:] {
		e, err := parseEra(r)
		if err != nil {
			return nil, fmt.Errorf("eras.csv: era %d: %w", i+1, err)
		}
		out = append(out, e)
	}
	return out, nil
}

func parseEra(r []string) (e era, err error) {
	e = era{Client: r[1], From: r[2], To: r[3], Formula: r[6], Basis: r[8], Source: r[9]}
	if e.Arch, err = cpus.ParseArch(r[0]); err != nil {
		return e, err
	}
	if e.Protocol, err = protocol(r[4], e.Arch); err != nil {
		return e, err
	}
	if r[5] != "" {
		if e.Buffer, err = sched.ParseBuffer(r[5]); err != nil {
			return e, err
		}
	}
	if formulas[e.Formula] == nil {
		return e, fmt.Errorf("no formula %q", e.Formula)
	}
	e.Stops, err = strconv.Atoi(r[7])
	return e, err
}

// protocol finds a built-in protocol, or one of the files here.
func protocol(name string, a isa.Arch) (*poke.Protocol, error) {
	if !strings.HasSuffix(name, ".plan") {
		p := poke.Named(name, a.Traits())
		if p == nil {
			return nil, fmt.Errorf("no protocol %q", name)
		}
		return p, nil
	}
	src, err := data.ReadFile("plans/" + name)
	if err != nil {
		return nil, err
	}
	return poke.ParseProtocol(name, src)
}
