// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/journal"
)

// written is a run's files: the summary, the table, and the documents beside it.
func written(table results.Table, answer *experiments.Answer, about Summary) (files []journal.File, err error) {
	docs := []results.Document{{Name: summaryName,
		Write: func(w io.Writer) error { return json.NewEncoder(w).Encode(about) }}}
	if len(table.Rows) > 0 {
		docs = append(docs, results.Document{Name: table.Name + ".csv",
			Write: func(w io.Writer) error { return results.WriteCSV(w, table) }})
	}
	if answer != nil {
		docs = append(docs, answer.Documents...)
	}
	for _, d := range docs {
		var b bytes.Buffer
		if err := d.Write(&b); err != nil {
			return files, fmt.Errorf("%s: %w", d.Name, err)
		}
		files = append(files, journal.File{Name: d.Name, Type: mediaType(d.Name), Data: b.Bytes()})
	}
	return files, nil
}

// mediaType is a file's, by the end of its name; the host's own list of types
// makes no difference.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".json":
		return "application/json"
	}
	return "application/octet-stream"
}
