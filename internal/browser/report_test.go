// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/chromedp/chromedp"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/page"
)

// TestReportNarrow: on a telephone the figures of a chart are as large as a footnote, and only the chart scrolls.
func TestReportNarrow(t *testing.T) {
	Need(t)
	manifest, err := json.Marshal(results.Manifest{Complete: true, Documents: []string{"chart.svg"}})
	if err != nil {
		t.Fatal(err)
	}
	// As wide as charts are (results/plots), whose figures have 8 points.
	const chart = `<svg xmlns="http://www.w3.org/2000/svg" width="467.72pt" height="297.64pt" viewBox="0 0 467.72 297.64"/>`
	p, err := page.Read(fstest.MapFS{results.ManifestName: {Data: manifest}, "chart.svg": {Data: []byte(chart)}}, strconv.Quote)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := files.Write(file, 0o600, p.Write); err != nil {
		t.Fatal(err)
	}
	tab := Open(t, "file://"+file, "file:")
	tab.Do(chromedp.EmulateViewport(390, 844))
	const size = `document.querySelector("img").clientWidth / document.querySelector("img").naturalWidth * 8 * 96 / 72`
	if size := Ask[float64](tab, size); size < 10 {
		t.Errorf("the chart's figures have %.1f pixels", size)
	}
	if over := Ask[int](tab, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("the page is %d pixels too wide", over)
	}
}
