// SPDX-License-Identifier: Apache-2.0

// Package sim puts the parts together and asks them: a Config (config.go) names
// one combination of architecture, protocol, buffer and the rest; a Job (job.go)
// is what follows from it before anything runs; Count (tally.go) tells what an
// update costs by counting alone, Live (live.go) does it on the live machine,
// and Stress (stress.go) lets many clients, failures and unplugged CPUs at it.
// The rows that come out are in row.go; a Grid (grid.go) is the cross product of
// many choices, and a Budget (tally.go) is what rows are held against.
package sim
