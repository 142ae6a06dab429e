// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// picture is the address of a picture that holds all of it. In an img element a browser
// does not run such a picture's scripts, and does not load the files that it names. A
// picture that could do more when it is opened by itself is refused.
func picture(name string, data []byte) (template.URL, error) {
	kind := "image/png"
	if path.Ext(name) == ".svg" {
		kind = "image/svg+xml"
		if err := harmless(data); err != nil {
			return "", err
		}
	} else if !bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) {
		return "", errors.New("it is no PNG")
	}
	return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)), nil
}

// drawn are the elements of SVG that only draw.
var drawn = []string{"svg", "g", "defs", "title", "desc", "path", "rect", "circle", "ellipse", "line", "polyline",
	"polygon", "text", "tspan", "clipPath", "linearGradient", "radialGradient", "stop", "marker", "use"}

// harmless refuses an SVG that has anything but shapes and text.
func harmless(data []byte) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	for first := true; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && !first {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no SVG: %w", err)
		}
		switch token := token.(type) {
		case xml.Directive:
			return errors.New("refused: a document type")
		case xml.ProcInst:
			if token.Target != "xml" {
				return fmt.Errorf("refused: an instruction %q", token.Target)
			}
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		if first && e.Name.Local != "svg" {
			return fmt.Errorf("it is no SVG: it begins with %q", e.Name.Local)
		}
		first = false
		if !slices.Contains(drawn, e.Name.Local) {
			return fmt.Errorf("refused: an element %q", e.Name.Local)
		}
		for _, a := range e.Attr {
			name := strings.ToLower(a.Name.Local)
			if strings.HasPrefix(name, "on") || name == "href" && !strings.HasPrefix(a.Value, "#") {
				return fmt.Errorf("refused: an attribute %q", a.Name.Local)
			}
		}
	}
}

// markdown renders CommonMark and tables. It leaves raw HTML out.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(fit{}, 100))))

// fit makes a document a part of a page: headings go one level down, and of links and
// pictures only the words stay, unless they lead to the web.
type fit struct{}

// Transform changes the tree in place.
func (fit) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var bare []ast.Node
	// The function returns no error, and so does Walk.
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if entering {
				n.Level = min(n.Level+1, 6)
			}
		case *ast.Image:
			if entering {
				bare = append(bare, n)
			}
		case *ast.Link:
			if entering && !bytes.HasPrefix(n.Destination, []byte("https://")) &&
				!bytes.HasPrefix(n.Destination, []byte("http://")) {
				bare = append(bare, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range bare {
		parent := n.Parent()
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			parent.InsertBefore(parent, n, child)
		}
		parent.RemoveChild(parent, n)
	}
}
