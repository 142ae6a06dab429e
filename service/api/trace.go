// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/service"
)

// TraceLine is a line of a trace, or what is missing before the next.
type TraceLine struct {
	service.Line
	Missed int `json:"missed,omitempty"` // lines of this client's that were left out: it reads too slowly
}

// trace streams the lines of what a client wants.
func (h *Handler) trace(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	client, ops, format, renew := p.string("client"), p.string("ops"), p.string("format"), p.bool("renew")
	if format != "" && format != "json" && format != "text" {
		p.fail("format", "%v", spelling.NotOneOf(format, []string{"json", "text"}))
	}
	if client == "" {
		p.fail("client", "is missing")
	}
	if err := p.check(); err != nil {
		return err
	}
	if err := mine(w, client); err != nil {
		return err
	}
	kind, write := "application/x-ndjson", traceJSON
	if format == "text" {
		kind, write = "text/plain; charset=utf-8", traceText
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-h.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	return h.streamed(w, r, kind, func(out *pieces) error {
		defer h.attend(renew, client)()
		err := h.running.Load().service.Trace(ctx, client, ops, func(lines []service.Line, missed int) error {
			out.text.Reset()
			for i := range lines {
				write(out.text, &lines[i], 0)
			}
			if missed > 0 {
				text := fmt.Sprintf("# %d lines are missing: they are read too slowly", missed)
				write(out.text, &service.Line{Text: text}, missed)
			}
			err := out.send()
			if err != nil {
				cancel()
			}
			return err
		})
		if ctx.Err() != nil { // the client has gone, or is too slow, or is cut off
			return nil
		}
		return err
	})
}

func traceText(out *bytes.Buffer, l *service.Line, _ int) { out.WriteString(l.Text + "\n") }

func traceJSON(out *bytes.Buffer, l *service.Line, missed int) {
	b, err := json.Marshal(TraceLine{*l, missed})
	if err != nil { // the types rule it out
		panic(err)
	}
	out.Write(append(b, '\n'))
}
