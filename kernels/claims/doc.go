// SPDX-License-Identifier: Apache-2.0

// Package claims holds this project's statements about the kernel's source, so that a test
// can compare them with it. claims.txt is a table: a statement, the releases that it is
// about, a file and a function, and the texts that must and must not stand there.
// Documents, tables and cases cite a claim as claim:NAME.
//
// There is no code but the test that reads the table against a source tree:
//
//	TEXTPOKE_SOURCE=/usr/src/linux-source-6.12 go test ./kernels/claims -run Source -v
//
// It says of each claim "holds", "absent" (the release is outside of the claim's, and the described
// text does not stand there), "fails" or "cannot tell" (the file or the function is not in this
// tree, or the claim's bound is not known exactly and the release lies behind it). Several trees
// are separated by colons. With -update the answers go to answers.csv and to the table in
// docs/claims.md.
package claims
