// SPDX-License-Identifier: Apache-2.0

// Package page makes one HTML file of a directory of results, which a person can
// attach to a mail: what was asked and of what, the answer, pictures, and the first
// rows of every table. The file needs nothing beside it and runs no script.
//
// All files of the directory are foreign: text is escaped, Markdown loses its raw
// HTML and all links but those of the web, and pictures stand in img elements, in
// which a browser runs nothing. The page's policy forbids scripts and requests.
package page
