// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/results/perfetto"
)

// Kind is what a step is.
type Kind string

// The kinds of steps.
const (
	Begin     Kind = "begin"     // a function begins that changes text for a batch, or for an update
	End       Kind = "end"       // it returns
	Store     Kind = "store"     // bytes are stored to text
	Round     Kind = "round"     // every CPU is told to synchronise
	Answer    Kind = "answer"    // a CPU does
	Done      Kind = "done"      // the sender of a round goes on
	Trap      Kind = "trap"      // a CPU has run into a breakpoint
	Leave     Kind = "leave"     // its handler lets it go on elsewhere
	Pass      Kind = "pass"      // the handler leaves the breakpoint to another one
	Stop      Kind = "stop"      // a CPU stops the machine
	Resume    Kind = "resume"    // that is over
	Stand     Kind = "stand"     // a CPU stands still
	Go        Kind = "go"        // it does so no more
	Publish   Kind = "publish"   // handlers find the batch, those on the CPU of that name
	Unpublish Kind = "unpublish" // they do so no more
	Grace     Kind = "grace"     // a task begins to wait for a grace period of RCU
	Elapsed   Kind = "elapsed"   // that is over
	Take      Kind = "take"      // a handler takes a reference
	Give      Kind = "give"      // and gives it back
	Move      Kind = "move"      // a task that has begun something goes on on this CPU; Name is the number of the one before
	Change    Kind = "change"    // text is not what the stores made of it: found at the end
)

var kinds = []Kind{Begin, End, Store, Round, Answer, Done, Trap, Leave, Pass, Stop, Resume, Stand, Go, Publish, Unpublish,
	Grace, Elapsed, Take, Give, Move, Change}

// Step is one step of a CPU.
type Step struct {
	CPU      int
	Kind     Kind
	At       uint64 // the text that it is about, and where Leave goes on; 0 for none
	Old, New []byte // of Store and Change
	Name     string // a function: that begins, stores, answers, or is called while the machine stands still
}

// From is the CPU that the task of a Move was on; -1 for any other step.
func (s *Step) From() int {
	n, err := strconv.Atoi(s.Name)
	if s.Kind != Move || err != nil {
		return -1
	}
	return n
}

func (s *Step) String() string {
	text := fmt.Sprintf("CPU %d: %s", s.CPU, s.Kind)
	if s.At != 0 {
		text += fmt.Sprintf(" %#x", s.At)
	}
	if len(s.New) > 0 {
		text += fmt.Sprintf(" % x <- % x", s.New, s.Old)
	}
	if s.Name != "" {
		text += " " + s.Name
	}
	return text
}

// Recording is what a kernel was seen to do.
type Recording struct {
	File                 string // that it was read from; "" for none
	Image, Release, Arch string // the image's hash is SHA-256, in hexadecimal
	CPUs                 int
	Text                 Text   // of the kernel itself, without modules
	Protocol             string // by which the image says that it changes records; "" where that is not known
	Actions              []string
	Watched              []string // functions, and why these; functions that are not watched, and why not
	Fences               []string // the barrier behind the stores of each storing function; none if one of them has none
	Steps                []Step
}

// Text is a range of addresses, without To itself; the zero value where it is not known.
type Text struct{ From, To uint64 }

// Has tells whether some bytes from an address on reach into the text.
func (t Text) Has(at uint64, n int) bool { return at < t.To && at+uint64(n) > t.From }

// Watches tells whether steps of a kind are recorded when they happen.
func (r *Recording) Watches(k Kind) bool {
	return slices.ContainsFunc(r.Watched, func(w string) bool { return strings.HasPrefix(w, string(k)+" ") }) ||
		slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Kind == k })
}

// The first line of a recording, and the columns of its steps.
const firstLine = "# textpoke recording 1"

var columns = []string{"step", "cpu", "what", "address", "old", "new", "batch", "name"}

// Write writes a recording. Its last line says how many steps there are. The batch that a step is of is written for
// people: reading works it out of the steps.
func (r *Recording) Write(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s\n# image: %s\n# release: %s\n# arch: %s\n# cpus: %d\n# protocol: %s\n", firstLine, r.Image,
		r.Release, r.Arch, r.CPUs, r.Protocol)
	if r.Text != (Text{}) {
		fmt.Fprintf(w, "# text: %x-%x\n", r.Text.From, r.Text.To)
	}
	for i, lines := range [][]string{r.Actions, r.Fences, r.Watched} {
		for _, line := range lines {
			fmt.Fprintf(w, "# %s: %s\n", []string{"action", "fence", "watched"}[i], line)
		}
	}
	fmt.Fprintln(w, strings.Join(columns, ","))
	batches := make([]string, len(r.Steps))
	for n, b := range r.Batches() {
		for _, i := range b.Steps {
			batches[i] = strconv.Itoa(n + 1)
		}
	}
	for i, s := range r.Steps {
		at := ""
		if s.At != 0 {
			at = strconv.FormatUint(s.At, 16)
		}
		fmt.Fprintf(w, "%d,%d,%s,%s,%x,%x,%s,%s\n", i+1, s.CPU, s.Kind, at, s.Old, s.New, batches[i], s.Name)
	}
	fmt.Fprintf(w, "# steps: %d\n", len(r.Steps))
	return w.Flush()
}

// The limits of a recording.
const (
	maxSteps = 4 << 20
	maxBytes = 512 << 20 // unpacked
	maxCPUs  = 64
)

// Name is the file of a recording; the kernel's release where it has none.
func (r *Recording) Name() string { return cmp.Or(r.File, r.Release) }

// ErrNoRecording is a file that does not begin as a recording does.
var ErrNoRecording = fmt.Errorf("no recording: want %q on its first line", firstLine)

// Open reads the recording of a file, as Read does.
func Open(file string) (*Recording, error) {
	f, err := inputs.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(file, f)
}

// Read reads a recording, which may be packed by gzip. Errors name the file and the line.
func Read(file string, in io.Reader) (*Recording, error) {
	b := bufio.NewReader(in)
	if head, _ := b.Peek(2); string(head) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, ErrNoRecording)
		}
		b = bufio.NewReader(z)
	}
	if head, _ := b.Peek(len(firstLine)); string(head) != firstLine {
		return nil, fmt.Errorf("%s: %w", file, ErrNoRecording)
	}
	p := parser{r: &Recording{File: file}, in: bufio.NewScanner(io.LimitReader(b, maxBytes))}
	p.in.Buffer(nil, 1<<16)
	if err := p.read(); err != nil {
		return nil, &inputs.ParseError{File: file, Line: p.line, Reason: err.Error()}
	}
	return p.r, nil
}

// parser is a recording that is being read.
type parser struct {
	r    *Recording
	in   *bufio.Scanner
	line int
}

// next is the next line; "" and an error where there is none.
func (p *parser) next() (string, error) {
	p.line++
	if p.in.Scan() {
		return p.in.Text(), nil
	}
	if err := p.in.Err(); err != nil {
		return "", err
	}
	return "", errors.New("it ends without its last line, \"# steps: N\"")
}

func (p *parser) read() error {
	if line, err := p.next(); err != nil || line != firstLine {
		return ErrNoRecording
	}
	for {
		line, err := p.next()
		if err != nil {
			return err
		}
		if line == strings.Join(columns, ",") {
			break
		}
		if err := p.header(line); err != nil {
			return err
		}
	}
	if p.r.CPUs == 0 || p.r.Arch == "" {
		return errors.New("want lines \"# arch:\" and \"# cpus:\" before the steps")
	}
	for {
		line, err := p.next()
		if err != nil {
			return err
		}
		if text, last := strings.CutPrefix(line, "# steps: "); last {
			return p.end(text)
		}
		if len(p.r.Steps) == maxSteps {
			return fmt.Errorf("more than %d steps", maxSteps)
		}
		s, err := p.step(line)
		if err != nil {
			return fmt.Errorf("%.200q: %w", line, err)
		}
		p.r.Steps = append(p.r.Steps, s)
	}
}

// end reads the last line.
func (p *parser) end(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n != len(p.r.Steps) {
		return fmt.Errorf("it says that it has %.20q steps, and has %d", text, len(p.r.Steps))
	}
	if p.in.Scan() {
		return errors.New("something stands behind its last line")
	}
	return p.in.Err()
}

func (p *parser) header(line string) error {
	key, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
	r := p.r
	text := map[string]*string{"image": &r.Image, "release": &r.Release, "arch": &r.Arch, "protocol": &r.Protocol}[key]
	list := map[string]*[]string{"action": &r.Actions, "fence": &r.Fences, "watched": &r.Watched}[key]
	switch {
	case !ok || !strings.HasPrefix(line, "# "):
		return fmt.Errorf("%.60q: want \"# KEY: VALUE\", or the names of the columns", line)
	case text != nil:
		*text = value
	case list != nil:
		*list = append(*list, value)
	case key == "text":
		if n, err := fmt.Sscanf(value, "%x-%x", &r.Text.From, &r.Text.To); n != 2 || err != nil || r.Text.To <= r.Text.From {
			return fmt.Errorf("text %q: want two addresses such as ffffffff81000000-ffffffff82000000", value)
		}
	case key == "cpus":
		n, err := strconv.Atoi(value)
		if err != nil || n < 2 || n > maxCPUs {
			return fmt.Errorf("cpus %q: want 2 to %d", value, maxCPUs)
		}
		r.CPUs = n
	default:
		return fmt.Errorf("%q: no such key", key)
	}
	return nil
}

// step reads a line of the table.
func (p *parser) step(line string) (s Step, err error) {
	f := strings.Split(line, ",")
	if len(f) != len(columns) {
		return s, fmt.Errorf("want %d fields", len(columns))
	}
	if want := strconv.Itoa(len(p.r.Steps) + 1); f[0] != want {
		return s, fmt.Errorf("step %q: want %s", f[0], want)
	}
	if s.CPU, err = strconv.Atoi(f[1]); err != nil || s.CPU < 0 || s.CPU >= p.r.CPUs {
		return s, fmt.Errorf("CPU %q: want 0 to %d", f[1], p.r.CPUs-1)
	}
	if s.Kind = Kind(f[2]); !slices.Contains(kinds, s.Kind) {
		return s, fmt.Errorf("what %q: want one of %v", f[2], kinds)
	}
	if f[3] != "" {
		if s.At, err = strconv.ParseUint(f[3], 16, 64); err != nil {
			return s, fmt.Errorf("address %q: want hexadecimal digits", f[3])
		}
	}
	old, err1 := hex.DecodeString(f[4])
	now, err2 := hex.DecodeString(f[5])
	s.Old, s.New, s.Name = old, now, f[7]
	stores := s.Kind == Store || s.Kind == Change
	switch {
	case err1 != nil || err2 != nil || len(old) != len(now):
		return s, errors.New("want as many bytes before as after")
	case stores != (len(now) > 0):
		return s, fmt.Errorf("a step %q with %d bytes", s.Kind, len(now))
	case s.At == 0 && (stores || s.Kind == Trap):
		return s, fmt.Errorf("a step %q without an address", s.Kind)
	case s.Kind == Move && (s.From() < 0 || s.From() >= p.r.CPUs || s.From() == s.CPU):
		return s, fmt.Errorf("a step %q from CPU %q: want another one, 0 to %d", s.Kind, s.Name, p.r.CPUs-1)
	case s.Name == "" && (s.Kind == Begin || s.Kind == Stop):
		return s, fmt.Errorf("a step %q without a name", s.Kind)
	case s.At > ^uint64(0)-uint64(len(now)):
		return s, errors.New("it stores beyond the last address")
	}
	return s, nil
}

// stepTime is how far apart steps are on a timeline, in nanoseconds: their order is known, and no time.
const stepTime = 1000

// ends are the steps that end what another one has begun.
var ends = map[Kind]bool{End: true, Done: true, Leave: true, Pass: true, Resume: true, Go: true, Elapsed: true}

// Timeline writes a recording for ui.perfetto.dev: a track for each CPU, whose time is the number of the step.
func (r *Recording) Timeline(to io.Writer) error {
	w := perfetto.NewWriter(to, 0)
	tracks, open := make([]perfetto.Track, r.CPUs), make([]int, r.CPUs)
	for cpu := range tracks {
		tracks[cpu] = w.Track(perfetto.About{Name: fmt.Sprintf("CPU %d", cpu), Rank: cpu})
	}
	for i := range r.Steps {
		s, now := &r.Steps[i], int64(i+1)*stepTime
		name := fmt.Sprintf("%s %s", s.Kind, s.Name)
		if s.At != 0 {
			name = fmt.Sprintf("%s %#x % x", s.Kind, s.At, s.New)
		}
		switch {
		case ends[s.Kind] && open[s.CPU] > 0:
			w.End(tracks[s.CPU], now)
			open[s.CPU]--
		case s.Kind == Begin || s.Kind == Round || s.Kind == Trap || s.Kind == Stop || s.Kind == Stand || s.Kind == Grace:
			w.Begin(tracks[s.CPU], name, now, perfetto.Link{})
			open[s.CPU]++
		default:
			w.Instant(tracks[s.CPU], name, now, perfetto.Link{})
		}
	}
	for cpu, n := range open {
		for range n {
			w.End(tracks[cpu], int64(len(r.Steps)+1)*stepTime)
		}
	}
	return w.Close()
}
