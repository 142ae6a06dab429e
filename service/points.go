// SPDX-License-Identifier: Apache-2.0

package service

// The points at which Config.At is called. A process may end at any of them and
// nothing promised is lost.
const (
	BeforeAccept  = "before accept" // nothing is in the journal
	AfterAccept   = "after accept"  // it is, and its client has no answer yet
	BeforeApply   = "before apply"  // requests are merged
	AfterStep     = "after step "   // followed by the step's name: the text is half changed
	AfterApply    = "after apply"   // the text is changed, the journal does not know
	BeforeAnswer  = "before answer"
	AfterAnswer   = "after answer" // the journal knows, and its client has no answer yet
	DuringLook    = "during look"  // between the looks at what is on its way and at the journal
	BeforeCompact = "before compact"
	DuringCompact = "during compact" // some of it is removed
	AfterCompact  = "after compact"
)
