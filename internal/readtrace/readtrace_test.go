// SPDX-License-Identifier: Apache-2.0

package readtrace

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestRefused: what a reader would have to guess at, each behind a packet that is right.
func TestRefused(t *testing.T) {
	number := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	message := func(b []byte, n protowire.Number, m []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), m)
	}
	first := slices.Clip(number(number(nil, 10, 1), 13, 3))
	track := func(b []byte) []byte { return message(first, 60, b) }
	for want, packet := range map[string][]byte{
		"":                              track(number(nil, 1, 7)),
		"TracePacket: unknown field":    number(first, 99, 1),
		"TrackDescriptor: unknown":      track(number(number(nil, 1, 7), 99, 1)),
		"cannot parse":                  number(first, 8, 1)[:len(first)+1],
		"sequence 2":                    number(nil, 10, 2),
		"nothing has cleared":           number(nil, 10, 1),
		"track 0 \"\" is there already": track(nil),
		"track 7 is not there":          message(number(first, 8, 5), 11, number(number(nil, 9, 3), 11, 7)),
		"name 4 is not there":           message(number(first, 8, 5), 11, number(number(nil, 9, 3), 10, 4)),
		"an event at 0":                 message(first, 11, number(nil, 9, 3)),
		"required field":                message(first, 12, message(nil, 2, number(nil, 1, 4))),
	} {
		_, err := Read(message(nil, 1, packet))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
