// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// The checker for pages: .ci/checker compiles it to WebAssembly. It gives the page one function,
// textpokeCheck. It takes a plan and its question as JSON, a stepper.Edit, and answers with the verdict
// as a page shows it, or with an error.
package main

import (
	"context"
	"encoding/json"
	"strings"
	"syscall/js"

	"github.com/textpoke/textpoke/check/lessons"
	"github.com/textpoke/textpoke/check/stepper"
)

type told struct {
	HTML  string `json:"html,omitempty"`
	Wrong string `json:"wrong,omitempty"`
}

func main() {
	js.Global().Set("textpokeCheck", js.FuncOf(func(_ js.Value, args []js.Value) any {
		html, err := ask(args[0].String())
		t := told{HTML: html}
		if err != nil {
			t = told{Wrong: err.Error()}
		}
		text, err := json.Marshal(t)
		if err != nil { // two strings
			panic(err)
		}
		return string(text)
	}))
	select {}
}

func ask(asked string) (string, error) {
	var e stepper.Edit
	if err := json.Unmarshal([]byte(asked), &e); err != nil {
		return "", err
	}
	c, err := lessons.Edited(context.Background(), e)
	if err != nil {
		return "", err
	}
	var html strings.Builder
	err = c.Write(&html)
	return html.String(), err
}
