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
	Arch, Layout string
	From         string // FromSite or FromEntry
	Behind       int64  // bytes behind the site's first byte at which counting begins
	Down, Up     int64  // bytes below that, and above, the ends included
	Releases     string // of Linux that have such sites
	What         string // instructions
	Source       string
}

// Reaches is the table of those.
var Reaches = &Set[Reach]{
	Name:    "branch-reach",
	columns: []string{"arch", "layout", "from", "behind_bytes", "down_bytes", "up_bytes", "releases", "what", "source"},
	parse: func(c *cells) Reach {
		return Reach{
			Arch: c.words("arch"), Layout: c.oneOf("layout", WordSite, PairSite), From: c.oneOf("from", FromSite, FromEntry),
			Behind: c.count("behind_bytes"), Down: c.count("down_bytes"), Up: c.count("up_bytes"),
			Releases: c.words("releases"), What: c.words("what"), Source: c.words("source"),
		}
	},
}
