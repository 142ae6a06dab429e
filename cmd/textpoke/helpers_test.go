// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments/catalogue"
	"github.com/textpoke/textpoke/internal/sandbox"
	"github.com/textpoke/textpoke/service/lab"
)

// TestMain lets scripts run this very program as textpoke, without what
// TEXTPOKE_TEST_FORBIDDEN names, if it does.
func TestMain(m *testing.M) {
	lab.Serve(catalogue.All, zap.NewNop())
	testscript.Main(m, map[string]func(){"textpoke": func() {
		if what := os.Getenv("TEXTPOKE_TEST_FORBIDDEN"); what != "" {
			if err := sandbox.Forbid(what); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		main()
	}})
}

// result is what a command line came to.
type result struct {
	code     int
	out, err string
}

// textpoke carries a command line out in this process.
func textpoke(t *testing.T, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(t.Context(), args, streams{strings.NewReader(""), &out, &err})
	return result{code, out.String(), err.String()}
}

// done is textpoke for command lines that must work.
func done(t *testing.T, args ...string) string {
	t.Helper()
	r := textpoke(t, args...)
	if r.code != exitDone || r.err != "" {
		t.Fatalf("textpoke %s: exit code %d, stderr: %s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// sheet is a CSV text: rows by column name.
type sheet struct {
	header []string
	rows   []map[string]string
}

func parseSheet(text string) (sheet, error) {
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(all) == 0 {
		return sheet{}, err
	}
	s := sheet{header: all[0]}
	for _, record := range all[1:] {
		row := map[string]string{}
		for i, cell := range record {
			row[s.header[i]] = cell
		}
		s.rows = append(s.rows, row)
	}
	return s, nil
}

func mustSheet(t *testing.T, text string) sheet {
	t.Helper()
	s, err := parseSheet(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return s
}

func readSheet(t *testing.T, path ...string) sheet {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return mustSheet(t, string(b))
}

// cancelled is a context that ends with the n-th line of stdout; w is that
// stdout.
func cancelled(t *testing.T, n int) (ctx context.Context, w *cancelWriter) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, &cancelWriter{left: n, cancel: cancel}
}

type cancelWriter struct {
	bytes.Buffer
	left   int
	cancel func()
}

func (c *cancelWriter) Write(b []byte) (int, error) {
	if c.left -= bytes.Count(b, []byte("\n")); c.left <= 0 {
		c.cancel()
	}
	return c.Buffer.Write(b)
}
