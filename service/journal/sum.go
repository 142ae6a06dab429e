// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"modernc.org/sqlite"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is a CRC-32C over the cells of a row, each with its kind and length, so that no
// two rows are one text. SQLite keeps no sums, and serves bits that have changed.
func sumOf(cells ...any) int64 {
	var text []byte
	for _, c := range cells {
		switch c := c.(type) {
		case nil:
			text = append(text, 'n')
		case string:
			text = append(binary.AppendUvarint(append(text, 't'), uint64(len(c))), c...)
		case State:
			text = append(binary.AppendUvarint(append(text, 't'), uint64(len(c))), c...)
		case []byte:
			text = append(binary.AppendUvarint(append(text, 'b'), uint64(len(c))), c...)
		case int:
			text = binary.AppendVarint(append(text, 'i'), int64(c))
		case int64:
			text = binary.AppendVarint(append(text, 'i'), c)
		case bool:
			n := int64(0)
			if c {
				n = 1
			}
			text = binary.AppendVarint(append(text, 'i'), n)
		default:
			panic(fmt.Sprintf("no sum of a %T", c)) // the rows are ours
		}
	}
	return int64(crc32.Checksum(text, castagnoli))
}

// textpoke_sum is sumOf in SQL, for whole tables.
func init() {
	sqlite.MustRegisterDeterministicScalarFunction("textpoke_sum", -1,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			cells := make([]any, len(args))
			for i, a := range args {
				cells[i] = a
			}
			return sumOf(cells...), nil
		})
}

// The cells that each sum is over, as SQL has them. An ID is none of them: the indexes
// have it, too.
const (
	askedOf = "textpoke_sum(client, COALESCE(key, ''), ops, enable, records, digest, submitted, deadline)"
	toldOf  = "textpoke_sum(state, batch, error, began, ended)"
	wantOf  = "textpoke_sum(client, ops, which)"
	runOf   = "textpoke_sum(name, request, state, error, began, ended, bytes)"
	fileOf  = "textpoke_sum(run, name, type, data)"
	namesOf = "textpoke_sum(list)"
)

func askedSum(u *Update, digest string) int64 {
	return sumOf(u.Client, u.Key, u.Ops, u.Enable, u.Records, digest, nanos(u.Submitted), nanos(u.Deadline))
}

func toldSum(u *Update) int64 {
	return sumOf(u.State, u.Batch, u.Error, nanos(u.Began), nanos(u.Ended))
}

func runSum(r *Run) int64 {
	return sumOf(r.Name, r.Request, r.State, r.Error, nanos(r.Began), nanos(r.Ended), r.Bytes)
}
