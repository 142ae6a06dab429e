// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import "github.com/textpoke/textpoke/results"

// cells are those that no field and no method is.
var cells = map[string]func(*Row) any{
	"role":    func(r *Row) any { return r.role() },
	"batches": func(r *Row) any { return results.If(r.Batches != noBatches, r.Batches) },
}

// Batched is the number of batches; empty where there are none.
func (s Summary) Batched() any { return results.If(s.Batches != noBatches, s.Batches) }

func (r *Row) role() string {
	if r.Patcher {
		return "patcher"
	}
	return "receiver"
}
