// SPDX-License-Identifier: Apache-2.0

// Package audit tells which known defects of code patching a kernel's image has: by what its
// code calls and touches, and by executing it, never by its release. Each rule belongs to a
// case of the museum or to a finding, and goes by its name.
package audit
