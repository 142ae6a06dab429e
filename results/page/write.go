// SPDX-License-Identifier: Apache-2.0

package page

import (
	_ "embed"
	"html/template"
	"io"
	"time"
)

//go:embed page.css
var style string

//go:embed page.html.tmpl
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(style) },
	"utc":   func(t time.Time) string { return t.UTC().Format("2 January 2006 15:04:05 UTC") },
}).Parse(source))

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return page.Execute(w, p) }
