// SPDX-License-Identifier: Apache-2.0

// Package stepper makes pages on which a reader steps through a trace of the checker,
// forwards and backwards: CPUs side by side, the bytes of each site, the versions that each
// CPU may fetch, and at the end why a property broke.
//
// A page is one HTML file with its style and its script inside. It loads nothing from
// elsewhere, follows the reader's choice of light or dark, and can be used with keys alone.
// Without a script it shows the steps as text.
package stepper

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// Page is the page's contents, from top to bottom.
type Page struct {
	Title    string
	Lead     string // a paragraph below the title; "" for none
	Chapters []Chapter
}

// Chapter is a question with its answers. A page of one chapter needs no title for it.
type Chapter struct {
	Title      string
	Paragraphs []string
	Cases      []Case
}

// Case is a command's answer, with the steps that lead to it.
type Case struct {
	Command string
	Answer  string         // in a line
	Outline string         // of a proof, as lines; "" for none
	Trace   *explore.Trace // nil: there is none to step
	Edit    *Edit          // nil: there is no plan to edit
}

// Edit is a plan that readers may change, with the question's other choices. The page loads the checker
// at the first question: textpoke-checker.js beside it, which .ci/checker makes.
type Edit struct {
	Plan    string
	Choices map[string][]string
}

var (
	//go:embed page.html.tmpl
	layout string
	//go:embed page.css
	style string
	//go:embed page.js
	script string

	page = template.Must(template.New("page").Funcs(template.FuncMap{
		"broken": func(p cpus.Property) string { return broken[p] },
		"number": func(i int) int { return i + 1 },
	}).Parse(layout))
)

// policy is the page's Content-Security-Policy (Level 3, section 2.3.1): its own style and
// script, known by their hashes, and a script beside it, which may be WebAssembly.
var policy = fmt.Sprintf("default-src 'none'; img-src data:; script-src '%s' 'self' 'wasm-unsafe-eval'; style-src '%s'; base-uri 'none'; "+
	"form-action 'none'", hash(script), hash(style))

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// broken has a sentence for each property that breaks.
var broken = map[cpus.Property]string{
	cpus.TornFetch: "The CPU took bytes of several versions for one instruction. It is not the old one, the new one " +
		"or a breakpoint.",
	cpus.UnhandledBreakpoint:  "The CPU ran into a breakpoint, and its handler found no batch that it belongs to.",
	cpus.WrongInstruction:     "The handler acted as another instruction than the one that the breakpoint stands for.",
	cpus.StaleAfterCompletion: "The update had promised that no CPU executes the old instruction any more, and one did.",
	cpus.HalfPair:             "The CPU executed the first instruction of one version and the second of another.",
	cpus.TornLiteral:          "The CPU called through a pointer that was only half written.",
	cpus.UseAfterFree:         "The CPU called through an ops that had been released.",
	cpus.MismatchedOps:        "A tracer's function was called with another tracer's ops.",
	cpus.LostCall:             "A tracer missed a call that it had been promised.",
	cpus.Deadlock:             "No CPU and no patcher can take another step.",
	cpus.LockOrder:            "Two locks are taken in both orders: two patchers can wait for each other for ever.",
	cpus.Overflow:             "The batch holds more patches than its vector has slots.",
	cpus.Conservation:         "The interrupts that were taken are not those that were sent.",
	cpus.FreedTable:           "A patcher found its page by way of a page table that had been freed.",
	cpus.WrongPage:            "A store to the text of one site went to the page of another.",
	cpus.BrokenSite:           "All is over, and a site has other text than the old or the new one.",
	cpus.StuckUpdate:          "Whatever follows from here on, the update cannot end.",
	cpus.StuckCPU:             "Whatever follows from here on, the CPU cannot come back between two calls.",
}

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	err := page.Execute(w, struct {
		Page
		Policy string
		Style  template.CSS
		Script template.JS
	}{p, policy, template.CSS(style), template.JS(script)})
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// Write writes the case as a page has it.
func (c Case) Write(w io.Writer) error { return page.ExecuteTemplate(w, "case", c) }
