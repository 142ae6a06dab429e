// SPDX-License-Identifier: Apache-2.0

package published

// The places that a reach counts from, and the shapes of sites.
const (
	FromSite  = "site"  // each site for itself
	FromEntry = "entry" // ftrace_caller, for all sites alike
	WordSite  = "word"  // one instruction toggles
	PairSite  = "pair"  // two instructions toggle together
)

// Reach is how far from what a site may call its target directly.
type Reach struct {
	Arch     string `col:"arch"`
	Layout   string `col:"layout,word|pair"`
	From     string `col:"from,site|entry"`
	Behind   int64  `col:"behind_bytes"` // bytes behind the site's first byte at which counting begins
	Down     int64  `col:"down_bytes"`   // bytes below that, the end included
	Up       int64  `col:"up_bytes"`     // and above
	Releases string `col:"releases"`     // of Linux that have such sites
	What     string `col:"what"`         // instructions
	Source   string `col:"source"`
}

// Reaches is the table of those.
var Reaches = &Set[Reach]{Name: "branch-reach"}
