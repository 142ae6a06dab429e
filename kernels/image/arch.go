// SPDX-License-Identifier: Apache-2.0

package image

import (
	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
)

// decoder is how the code of an instruction set is read.
type decoder struct {
	calls func(code, func(to uint64))
	refs  func(code, func(to uint64))
}

// decoders are by the instruction set's name (package cpus).
var decoders = map[string]decoder{
	x86_64.Name:  {callsX86, refsX86},
	arm64.Name:   {callsARM64, refsARM64},
	riscv64.Name: {callsRISCV, refsRISCV},
}
