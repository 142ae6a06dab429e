// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Line is a line of trace_pipe.
type Line struct {
	// Kind is function, graph or event; "" for another line. Name is the function, with its module as
	// Function.String has it, or the event without its group.
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Detail string `json:"detail,omitempty"` // who called a function, or the event's fields
	End    bool   `json:"end,omitempty"`    // of a call of graph whose beginning was a line of its own
	Task   string `json:"task,omitempty"`   // "" where the line does not say it
	PID    int    `json:"pid,omitempty"`
	CPU    int    `json:"cpu"`
	NS     int64  `json:"time_ns,omitempty"` // of the trace's clock; 0 for graph where its lines have no time
	Took   int64  `json:"took_ns,omitempty"` // of a call of graph that has ended
	Text   string `json:"text"`              // as it was read, without its end
	Lost   int    `json:"lost,omitempty"`    // events that the kernel overwrote before this line, on this CPU
}

// The kinds of lines.
const (
	FunctionLine = "function"
	GraphLine    = "graph"
	EventLine    = "event"
)

var (
	// A line begins with the name of its task, 16 bytes wide, and its PID (trace_print_context,
	// kernel/trace/trace_output.c). A name may hold anything: what looks like the rest of a line is looked for behind the 16 bytes.
	linePattern = regexp.MustCompile(`^(.*?)-(\d+) +(?:\([ \d-]+\) +)?\[(\d{3,})\] +(?:\S{4,8} +)?(\d+)\.(\d{6}): (.*)$`)
	// A function that was called (trace_fn_trace), and an event (ftrace_event_name, and its print fmt).
	calledPattern = regexp.MustCompile(`^(\S+(?: \[\S+\])?) <-(.*)$`)
	eventPattern  = regexp.MustCompile(`^(\w+): ?(.*)$`)
	lostPattern   = regexp.MustCompile(`^CPU:(\d+) \[LOST (\d+) EVENTS\]$`)
)

const taskWidth = 16

// ParseLine reads a line of the function tracer and of trace events.
func ParseLine(text string) Line {
	l := Line{Text: text}
	if m := lostPattern.FindStringSubmatch(text); m != nil {
		l.CPU, l.Lost = number(m[1]), number(m[2])
		return l
	}
	if len(text) < taskWidth {
		return l
	}
	m := linePattern.FindStringSubmatch(text[taskWidth:])
	if m == nil {
		return l
	}
	l.Task, l.PID, l.CPU = strings.TrimLeft(text[:taskWidth]+m[1], " "), number(m[2]), number(m[3])
	l.NS = int64(number(m[4]))*1e9 + int64(number(m[5]))*1e3
	if called := calledPattern.FindStringSubmatch(m[6]); called != nil {
		l.Kind, l.Name, l.Detail = FunctionLine, called[1], called[2]
	} else if event := eventPattern.FindStringSubmatch(m[6]); event != nil {
		l.Kind, l.Name, l.Detail = EventLine, event[1], event[2]
	}
	return l
}

// number reads digits; too many of them are 0.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// Graph reads the lines of function_graph, one after the other: the end of a call is "}" alone.
type Graph struct {
	open  map[[2]int]string // by CPU and depth, as the kernel itself remembers them (enter_funcs of struct fgraph_cpu_data)
	tasks map[int]Line      // of CPUs, as lines between calls say it
}

var (
	// kernel/trace/trace_functions_graph.c: print_graph_abs_time, print_graph_cpu, print_graph_duration, and the call; and
	// verif_pid.
	graphPattern  = regexp.MustCompile(`^(?: *(\d+)\.(\d{6}) \|)? *(\d+)\) (?:[^|]*?([\d.]+) us)?.*?\|( *)(.*)$`)
	switchPattern = regexp.MustCompile(`^ *(\d+)\) .* => +(.*)-(\d+) *$`)
	callPattern   = regexp.MustCompile(`^(.+?)\((.*)\)(;| \{)`)
	endPattern    = regexp.MustCompile(`^\}(?: /\* ([^ *]+(?: \[\S+\])?))?`)
)

// Parse reads the next line.
func (g *Graph) Parse(text string) Line {
	if to := switchPattern.FindStringSubmatch(text); to != nil {
		if g.tasks == nil {
			g.tasks = map[int]Line{}
		}
		g.tasks[number(to[1])] = Line{Task: to[2], PID: number(to[3])}
	}
	l := ParseLine(text)
	m := graphPattern.FindStringSubmatch(text)
	if l.Lost > 0 || m == nil {
		return Line{Text: text, CPU: l.CPU, Lost: l.Lost}
	}
	l = Line{Text: text, CPU: number(m[3]), NS: int64(number(m[1]))*1e9 + int64(number(m[2]))*1e3}
	l.Task, l.PID = g.tasks[l.CPU].Task, g.tasks[l.CPU].PID
	if us, err := strconv.ParseFloat(m[4], 64); err == nil {
		l.Took = int64(math.Round(1000 * us))
	}
	at := [2]int{l.CPU, len(m[5])}
	if call := callPattern.FindStringSubmatch(m[6]); call != nil {
		l.Kind, l.Name, l.Detail = GraphLine, call[1], call[2]
		if call[3] != ";" {
			if g.open == nil {
				g.open = map[[2]int]string{}
			}
			g.open[at] = l.Name
		}
	} else if end := endPattern.FindStringSubmatch(m[6]); end != nil {
		if l.Kind, l.Name, l.End = GraphLine, end[1], true; l.Name == "" {
			l.Name = g.open[at]
		}
		delete(g.open, at)
	}
	return l
}
