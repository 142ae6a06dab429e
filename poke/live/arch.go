// SPDX-License-Identifier: Apache-2.0

package live

import "github.com/textpoke/textpoke/cpus/x86_64"

// Arch is the instruction set of the text that this package can patch.
var Arch = x86_64.Arch
