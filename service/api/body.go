// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// readBody reads a JSON object into v, strictly: it refuses text that is not UTF-8, fields that are unknown, spelled
// otherwise or said twice, and anything behind the object, as encoding/json/v2 does. Two texts that differ never
// become the same. Errors name the field where there is one.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, v any) error {
	if ct, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || ct != "application/json" {
		return problem(http.StatusUnsupportedMediaType, "Content-Type", "want application/json")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem(http.StatusUnsupportedMediaType, "Content-Encoding", "%.20q: want the body as it is", coding)
	}
	ended := h.conns.awaits(r)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.Limits.Body))
	ended()
	if size := (*http.MaxBytesError)(nil); errors.As(err, &size) {
		return err
	} else if err != nil {
		return badField("", "%v", err)
	}
	if a, ok := w.(*answer); ok {
		a.wholly = true
	}
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true)); err != nil {
		return bodyProblem(err, v)
	}
	return nil
}

// bodyProblem words what the decoder says.
func bodyProblem(err error, v any) error {
	names := map[jsontext.Kind]string{'n': "null", 'f': "false", 't': "true", '"': "string", '0': "number",
		'{': "object", '[': "array"}
	var kind *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &kind):
		field := fieldOf(kind.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return unknownField(field, v)
		case kind.GoType == reflect.TypeFor[time.Time]() && kind.JSONKind == '"':
			return badField(field, "want a time as RFC 3339 has it, such as 2026-12-31T23:59:59Z")
		case kind.GoType == reflect.TypeFor[Value](): // which says by itself what it wants
			return badField(field, "%v", kind.Err)
		}
		return badField(field, "a JSON %s does not go there", names[kind.JSONKind])
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return badField(fieldOf(syntax.JSONPointer), "is said twice")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return badField("", "the body ends before the JSON object does")
	case errors.As(err, &syntax):
		return badField("", "byte %d: %v", syntax.ByteOffset, syntax.Err)
	}
	return badField("", "%v", err)
}

// fieldOf is what a pointer (RFC 6901) leads to, as people write it: config.entries.
func fieldOf(p jsontext.Pointer) string { return strings.Join(slices.Collect(p.Tokens()), ".") }

// unknownField says which field was probably meant.
func unknownField(field string, v any) error {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && strings.EqualFold(name, field) {
			return badField(field, "there is no such field: want %q", name)
		}
	}
	return badField(field, "there is no such field")
}

// text refuses strings that are too long or that a log or a terminal would choke
// on.
func text(field, s string, longest int) error {
	switch {
	case len(s) > longest:
		return badField(field, "%d bytes, want at most %d", len(s), longest)
	case !utf8.ValidString(s):
		return badField(field, "not UTF-8")
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return badField(field, "control characters in it")
	}
	return nil
}

// texts does so for a list.
func texts(field string, list []string, most, longest int) error {
	if len(list) > most {
		return badField(field, "%d of them, want at most %d", len(list), most)
	}
	for i, s := range list {
		if err := text(field+"["+strconv.Itoa(i)+"]", s, longest); err != nil {
			return err
		}
	}
	return nil
}

// params reads a request's parameters. It remembers the first one that is wrong or unknown.
type params struct {
	r    *http.Request
	seen map[string]bool
	err  error
}

func newParams(r *http.Request) *params {
	p := &params{r: r, seen: map[string]bool{}}
	if err := r.ParseForm(); err != nil {
		p.fail("", "the query is malformed")
	}
	for _, name := range []string{"name", "ops"} { // of the path, where they are a part of it
		if err := text(name, r.PathValue(name), maxText); err != nil && p.err == nil {
			p.err = err
		}
	}
	return p
}

func (p *params) fail(field, format string, args ...any) {
	if p.err == nil {
		p.err = badField(field, format, args...)
	}
}

// list is a parameter that may be repeated.
func (p *params) list(name string) []string {
	p.seen[name] = true
	return p.r.Form[name]
}

func (p *params) string(name string) string {
	values := p.list(name)
	switch {
	case len(values) == 0:
		return ""
	case len(values) > 1:
		p.fail(name, "given %d times", len(values))
	}
	if err := text(name, values[0], maxText); err != nil && p.err == nil {
		p.err = err
	}
	return values[0]
}

// number is a whole number within bounds.
func (p *params) number(name string, preset, low, high int64) int64 {
	s := p.string(name)
	if s == "" {
		return preset
	}
	return p.parse(name, s, low, high)
}

func (p *params) parse(name, s string, low, high int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high {
		p.fail(name, "%.40q: want a whole number from %d to %d", s, low, high)
	}
	return n
}

func (p *params) bool(name string) bool {
	switch s := p.string(name); s {
	case "", "false":
	case "true":
		return true
	default:
		p.fail(name, "%.40q: want true or false", s)
	}
	return false
}

// path is a number that is part of the path.
func (p *params) path(name string, high int64) int64 {
	return p.parse(name, p.r.PathValue(name), 0, high)
}

// check ends the reading: an unknown parameter is wrong.
func (p *params) check() error {
	for name := range p.r.Form {
		if !p.seen[name] {
			p.fail(name, "there is no such parameter")
		}
	}
	return p.err
}

// bare serves requests that have no parameters but those of their path.
func bare(answer serve) serve {
	return func(h *Handler, w http.ResponseWriter, r *http.Request) error {
		if err := newParams(r).check(); err != nil {
			return err
		}
		return answer(h, w, r)
	}
}
