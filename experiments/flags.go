package experiments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// Values is a flag that holds a list. Names are the valid values where they can
// be listed.
type Values[T any] struct {
	to    *[]T
	text  string
	names []string
	parse func(string) (T, error)
}

func (v *Values[T]) String() string { return v.text }

// Type is what help calls the value.
func (v *Values[T]) Type() string { return "list" }

// Get is the list.
func (v *Values[T]) Get() []T { return *v.to }

// Names are what the shell may complete.
func (v *Values[T]) Names() []string { return v.names }

// Set reads the list, comma-separated; it leaves it as it was on an error.
func (v *Values[T]) Set(s string) error {
	var out []T
	for part := range strings.SplitSeq(s, ",") {
		x, err := v.parse(part)
		if err != nil {
			return err
		}
		out = append(out, x)
	}
	*v.to, v.text = out, s
	return nil
}

// list registers a flag that is a list, with a default that it can read.
func list[T any](f *pflag.FlagSet, to *[]T, name, preset, usage string, names []string, parse func(string) (T, error)) {
	v := &Values[T]{to: to, names: names, parse: parse}
	if err := v.Set(preset); err != nil {
		panic(fmt.Sprintf("experiments: default of --%s: %v", name, err)) // a mistake of ours
	}
	if len(names) > 0 {
		usage += ": " + strings.Join(names, ", ")
	}
	f.Var(v, name, usage)
}

// oneOf parses names, and says which was probably meant.
func oneOf[T any](names []string, parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (T, error) {
		v, err := parse(s)
		if err != nil {
			err = spelling.NotOneOf(s, names)
		}
		return v, err
	}
}

// Arches registers --arch.
func Arches(f *pflag.FlagSet, to *[]isa.Arch) {
	names := cpus.ArchNames()
	list(f, to, "arch", strings.Join(names, ","), "`list` of instruction sets", names, oneOf(names, cpus.ParseArch))
}

// Buffers registers --buffer.
func Buffers(f *pflag.FlagSet, to *[]sched.Buffer, preset string) {
	list(f, to, "buffer", preset, "`list` of vector sizes: a number of slots (TP_VEC_MAX), or dynamic, as many as there are patches", nil, func(s string) (sched.Buffer, error) {
		b, err := sched.ParseBuffer(s)
		if err != nil {
			err = fmt.Errorf("want numbers of slots, 1 or more, or %s%s", sched.Dynamic, spelling.Hint(s, []string{sched.Dynamic.String()}))
		}
		return b, err
	})
}

// Lookups registers --lookup.
func Lookups(f *pflag.FlagSet, to *[]int3.Kind) {
	names := int3.KindNames()
	list(f, to, "lookup", strings.Join(names, ","), "`list` of indexes that trap handlers search", names, oneOf(names, int3.ParseKind))
}

// MetadataTables registers --table.
func MetadataTables(f *pflag.FlagSet, to *[]metadata.Kind) {
	names := metadata.KindNames()
	list(f, to, "table", strings.Join(names, ","), "`list` of tables of what is known of each function", names, oneOf(names, metadata.ParseKind))
}

// Counts registers a list of whole numbers from low to high.
func Counts(f *pflag.FlagSet, to *[]int, name, preset, usage string, low, high int) {
	list(f, to, name, preset, usage, nil, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("want whole numbers from %d to %d", low, high)
		}
		return n, nil
	})
}

// sizes are the letters that a number of bytes may end in.
var sizes = map[byte]uint64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

// Sizes registers a list of numbers of bytes up to high, such as 512, 4K or 2G.
func Sizes(f *pflag.FlagSet, to *[]uint64, name, preset, usage string, high uint64) {
	list(f, to, name, preset, usage, nil, func(s string) (uint64, error) {
		digits, unit := s, uint64(1)
		if n := len(s) - 1; n > 0 && sizes[s[n]] != 0 {
			digits, unit = s[:n], sizes[s[n]]
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || n > high/unit {
			return 0, fmt.Errorf("want numbers of bytes up to %d, such as 512, 4K, 96M or 2G", high)
		}
		return n * unit, nil
	})
}

// Size prints a number of bytes as Sizes reads it, in the largest unit that
// divides it.
func Size(n uint64) string {
	for _, unit := range []byte("GMK") {
		if n > 0 && n%sizes[unit] == 0 {
			return strconv.FormatUint(n/sizes[unit], 10) + string(unit)
		}
	}
	return strconv.FormatUint(n, 10)
}

// Roles is a flag that names a machine.
type Roles struct{ to *[]cpus.Role }

// NewRoles is the flag without a default.
func NewRoles(to *[]cpus.Role) *Roles { return &Roles{to} }

func (r *Roles) String() string {
	if r.to == nil || *r.to == nil {
		return ""
	}
	return cpus.FormatRoles(*r.to)
}

// Type is what help calls the value.
func (r *Roles) Type() string { return "machine" }

// Set reads a number of CPUs, or roles.
func (r *Roles) Set(s string) error {
	roles, err := cpus.ParseRoles(s)
	if err != nil {
		return err
	}
	*r.to = roles
	return nil
}

// Machine registers --cpus.
func Machine(f *pflag.FlagSet, to *[]cpus.Role, preset string) {
	r := &Roles{to}
	if err := r.Set(preset); err != nil {
		panic(fmt.Sprintf("experiments: default of --cpus: %v", err)) // a mistake of ours
	}
	f.Var(r, "cpus", "`machine`: a number of CPUs, or roles (busy, idle, isolated, irqsoff, offline) such as busy=6,isolated=2")
}

// Refs registers --refs.
func Refs(f *pflag.FlagSet, to *[]int3.Refs, preset string) {
	names := int3.RefsNames()
	list(f, to, "refs", preset, "`list` of ways in which handlers are counted", names, oneOf(names, int3.ParseRefs))
}

// Names registers a list of names, all of them by default.
func Names[T any](f *pflag.FlagSet, to *[]T, name, usage string, names []string, parse func(string) (T, error)) {
	list(f, to, name, strings.Join(names, ","), usage, names, oneOf(names, parse))
}
