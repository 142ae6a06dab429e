// SPDX-License-Identifier: Apache-2.0

// Package published holds figures that others measured and published, each with its
// source. They are inputs: some calibrate a model, others are compared with its results,
// and each use says which. A file with the same columns can replace any table.
package published
