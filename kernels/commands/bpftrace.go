// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"regexp"
	"strings"
)

func (c *course) bpftraceCommand(words []string) error {
	program := ""
	rest, err := options("e= o= f= q v d p= c= I= k B= /include= /unsafe /no-warnings", words, func(name, value string) {
		if name == "e" {
			program += value + "\n"
		}
	})
	switch {
	case err != nil || program != "":
		return errors.Join(err, c.bpftrace(program))
	case len(rest) == 0:
		return errors.New("want a program: -e TEXT, or a file")
	}
	return c.file(rest[0], (*course).bpftrace)
}

var (
	// Comments, texts, and directives of the preprocessor may hold anything.
	bpftraceOther = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|(?m:^\s*#[^\n]*)`)
	declaration   = regexp.MustCompile(`^(struct|union|enum|config|macro|fn|let|import)\b`)
	// A predicate stands between slashes, with a blank before it: the path of a program has none.
	predicate = regexp.MustCompile(`(?s)\s/.*$`)
)

// bpftrace reads the probes of a program: the text before each outermost pair of braces.
func (c *course) bpftrace(text string) error {
	text = bpftraceOther.ReplaceAllString(text, " ")
	depth, from, probes := 0, 0, 0
	for i, r := range text {
		switch {
		case r == '{':
			if depth++; depth == 1 {
				probes++
				c.bpftraceProbes(strings.TrimSpace(predicate.ReplaceAllString(text[from:i], "")))
			}
		case r == '}':
			if depth--; depth < 0 {
				return errors.New("a brace ends that none begins")
			}
			from = i + 1
		case r == ';' && depth == 0:
			from = i + 1
		}
	}
	switch {
	case depth > 0:
		return errors.New("a brace has no end")
	case probes == 0:
		return errors.New("it has no probe")
	}
	return nil
}

// bpftraceProbes are probes with commas between them. Kinds have short names, too; some name a module first.
func (c *course) bpftraceProbes(list string) {
	if declaration.MatchString(list) {
		return
	}
	for spec := range strings.SplitSeq(list, ",") {
		spec = strings.TrimSpace(spec)
		kind, name, _ := strings.Cut(spec, ":")
		last := name[strings.LastIndex(name, ":")+1:]
		switch kind {
		case "kprobe", "kretprobe", "k", "kr":
			action := "perf-kprobe:"
			if strings.ContainsAny(last, "*?[") { // one link to all of them
				action = "kprobe-multi:"
			}
			c.both(action + last)
		case "tracepoint", "t":
			c.events("perf-event", name)
		case "rawtracepoint", "rt":
			c.both("raw-tracepoint:" + last)
		case "fentry", "kfunc", "f", "fexit", "kretfunc", "fr":
			action := "fentry:"
			if strings.Contains(kind, "r") && kind != "fentry" || kind == "fexit" {
				action = "fexit:"
			}
			names := c.functions(last)
			if len(names) == 0 {
				names = []string{last} // it is refused by this name
			}
			for _, f := range names {
				c.both(action + f)
			}
		case "software", "s":
			event, _, _ := strings.Cut(name, ":")
			c.software(event)
		case "BEGIN", "END", "begin", "end", "interval", "i", "profile", "p", "hardware", "h": // no text of the kernel
		default:
			c.unknown("probe %s", spec)
		}
	}
}
