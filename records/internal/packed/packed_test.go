// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"bytes"
	"compress/flate"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Nothing here is slow; the flag lets go test ./... -long pass through.
var _ = flag.Bool("long", false, "run slow tests")

type record struct {
	addr           uint64
	symbol, module string
}

type table []record

func (t table) Len() int                              { return len(t) }
func (t table) Record(i int) (uint64, string, string) { return t[i].addr, t[i].symbol, t[i].module }

func encode(t interface{ Fatal(...any) }, tab table) []byte {
	var buf bytes.Buffer
	if err := Encode(&buf, tab); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func decode(data []byte) (tab table, err error) {
	err = Decode(data, func(addr uint64, symbol, module []byte) error {
		tab = append(tab, record{addr, string(symbol), string(module)})
		return nil
	})
	return tab, err
}

func TestRoundTrip(t *testing.T) {
	rec := rapid.Custom(func(t *rapid.T) record {
		return record{
			addr:   rapid.Uint64().Draw(t, "address") &^ 3,
			symbol: rapid.StringMatching(`[ab]{0,4}[a-z]{0,300}`).Draw(t, "symbol"),
			module: rapid.SampledFrom([]string{"", "", "m", "mm"}).Draw(t, "module"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := table(rapid.SliceOfN(rec, 0, 40).Draw(t, "records"))
		got, err := decode(encode(t, want))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]record(want), []record(got), cmp.AllowUnexported(record{})); len(want) > 0 && d != "" {
			t.Fatal(d)
		}
	})
}

// TestLongNames packs names with more in common than a byte can count.
func TestLongNames(t *testing.T) {
	name := strings.Repeat("n", 600)
	want := table{{4, name, ""}, {8, name, ""}, {12, name + "x", ""}, {16, name[:300], ""}}
	got, err := decode(encode(t, want))
	if d := cmp.Diff([]record(want), []record(got), cmp.AllowUnexported(record{})); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}

// handmade is a table of one record whose symbol claims to share bytes with a
// symbol before it.
func handmade(t *testing.T, shared byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	buf.WriteString(magic)
	z, err := flate.NewWriter(&buf, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"\x01\x01\x04\x00", "", "", string(shared), "a\n"} {
		if _, err := z.Write(append([]byte{byte(len(part))}, part...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestEncodeRefuses(t *testing.T) {
	err := Encode(&bytes.Buffer{}, table{{4, "a", ""}, {10, "b", ""}})
	if want := "packed: record 1 is 6 bytes behind the one before it, not a multiple of 4"; err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestDamaged(t *testing.T) {
	var tab table
	for i := range 50 {
		tab = append(tab, record{uint64(4 + 1000*i), fmt.Sprint("f", i), strings.Repeat("m", i/10)})
	}
	data := encode(t, tab)
	if got, err := decode(data); err != nil || len(got) != 50 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	for i := range len(data) - 5 { // the last bytes only end the stream
		if _, err := decode(data[:i]); !errors.Is(err, ErrFormat) {
			t.Errorf("%d of %d bytes: %v", i, len(data), err)
		}
	}
	if err := Decode(handmade(t, 5), nil); !errors.Is(err, ErrFormat) {
		t.Errorf("a first symbol that shares 5 bytes: %v", err)
	}
	stop := errors.New("stop")
	if err := Decode(data, func(uint64, []byte, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want what add says", err)
	}
}
