// SPDX-License-Identifier: Apache-2.0

// Package results is how results leave the program: rows that describe
// themselves, written as a table for people or as CSV or JSON for scripts, and
// directories in which a file is either complete or absent.
//
// A [Table] is columns and rows. A [Column] has a name, which carries the unit
// (elapsed_ns, buffer_bytes, events_per_s; a count has no suffix), and a
// sentence that says what it means. A cell is a [Value]: text, an integer, a
// float, a bool, or [Empty], which means "does not apply here" and is written
// as an empty cell (CSV), null (JSON) or a blank (table), never as 0. A row
// whose cells do not fit the columns is a mistake of the program and comes back
// as [ErrRow]; nothing of such a row is written.
//
// # Formats
//
// CSV and JSON are exact and deterministic: floats are printed
// with the fewest digits that read back as the same number, objects keep the
// order of the columns. A [RowWriter] takes rows one by one; CSV rows, and JSON
// objects, are handed on as soon as they are added, so that a run that is cut
// short has written its finished rows.
//
// [FormatTable] is for reading, and leaves out columns that say nothing:
//
//   - A column that is empty in every row is not shown, and one that is a detail is
//     shown only when it is asked for.
//   - A column that has the same value in every row, of two rows or more, is
//     printed once above the table, as "name: value", unless it leads.
//   - Times and sizes have a unit beside them (465.7 ms, 668.1 KiB), which their
//     column's name then lacks.
//   - Other floats are rounded to six significant digits; integers are printed in
//     full and without separators, so that a seed can be copied into a command.
//   - A single row that would be wider than [MaxWidth] is printed downwards, one
//     "name: value" line per column. On a screen ([Look]) several rows that do not fit
//     are printed side by side, their columns downwards.
//   - Numbers stand at the right of their column, everything else at the left.
//   - Text with control characters is quoted, so that a row stays one line.
//
// # Files
//
// A [Dir] writes each file under a temporary name in the same directory, syncs
// it to disk and renames it into place; an error, a panic or a cancelled run
// removes the temporary file and leaves what was there before. [Manifest] is
// written last, to manifest.json, and says how to repeat the run.
package results
