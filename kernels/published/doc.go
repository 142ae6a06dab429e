// SPDX-License-Identifier: Apache-2.0

// Package published holds figures that others have measured and published, each
// with its source. They are inputs: what is calibrated with them, or held against
// them, says so. A file with the same columns may stand in for each table.
package published
