// SPDX-License-Identifier: Apache-2.0

package records

import (
	"strconv"

	"github.com/textpoke/textpoke/internal/inputs"
)

// ParseError says where an input stops making sense: file, line, value, reason.
type ParseError = inputs.ParseError

// quotedMax is how many bytes of a wrong value an error message shows.
const quotedMax = 60

// quoted names a value in an error: address "zz". Long values are cut, and
// bytes that would upset a terminal are escaped.
func quoted[T string | []byte](what string, v T) string {
	s := string(v[:min(len(v), quotedMax)])
	q := strconv.Quote(s)
	if len(v) > quotedMax {
		q = q[:len(q)-1] + `..."`
	}
	return what + " " + q
}
