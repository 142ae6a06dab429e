// SPDX-License-Identifier: Apache-2.0

// Package plots draws charts in one style that can be read in print: black on
// white, colours that differ for every kind of colour vision and marks and
// dashes that differ without any, units in the labels of axes. A [Chart] is
// data; its Picture is written as SVG and as PNG, the same picture, and the same
// bytes every time.
package plots
