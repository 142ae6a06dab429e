// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Declared is a choice as a line of text declares it. The type of its variable says what its values are.
type Declared struct {
	Name, Default, Doc string
	Field              string   // of the struct that has the variable, without regard to case
	Repeated           bool     // each text adds a value; else there are commas between values
	Required           bool     // there is no request without it
	Values             []string // that there are; nil for any
	Low, High          string   // numbers or times; "" for none
	Above              bool     // Low is none of the values
	Line               int      // of the text, for those who know it
}

// line is the form of a declaration.
var line = regexp.MustCompile(`^([a-z][a-z0-9-]*)( repeated)?( required)?(?: for (\w+))?(?: = (\S+))?(?: of (\S+))?` +
	`(?: (from|above) (\d\S*)(?: to (\d\S*))?)?(?: : (.*))?$`)

// ParseDeclared reads "NAME repeated required for FIELD = DEFAULT of VALUE|VALUE from LOW to HIGH : DOC", of which all
// but the name may be missing; with above in place of from, LOW is none of the values. Without a FIELD it is the one that
// is called as the choice is, but for dashes.
func ParseDeclared(text string) (Declared, error) {
	m := line.FindStringSubmatch(text)
	if m == nil {
		return Declared{}, fmt.Errorf("flag %q: want NAME for FIELD = DEFAULT of VALUE|VALUE from LOW to HIGH : WHAT IT MEANS",
			text)
	}
	d := Declared{Name: m[1], Repeated: m[2] != "", Required: m[3] != "", Field: m[4], Default: m[5], Above: m[7] == "above",
		Low: m[8], High: m[9], Doc: m[10]}
	if d.Field == "" {
		d.Field = strings.ReplaceAll(d.Name, "-", "")
	}
	if m[6] != "" {
		d.Values = strings.Split(m[6], "|")
	}
	return d, nil
}

// Variable is the address of the variable of a struct that a choice is for; nil where it has none. A struct of the
// caller's own may keep it to itself.
func (d *Declared) Variable(of any) any {
	v := reflect.ValueOf(of).Elem().FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, d.Field) })
	if !v.IsValid() {
		return nil
	}
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Interface()
}

// Of is the choice of a variable; nil for types that have none in general. A text names a file where the declaration
// calls it one, or an image.
func (d *Declared) Of(to any) *Field {
	low, _ := strconv.Atoi(d.Low) // "" is 0
	high, _ := strconv.Atoi(d.High)
	if d.High == "" {
		high = math.MaxInt
	}
	switch to := to.(type) {
	case *bool:
		return Flag(to, d.Name, d.Doc)
	case *int:
		return One(to, d.Name, d.Default, d.Doc, Whole(low, high))
	case *[]int:
		return Counts(to, d.Name, d.Default, d.Doc, low, high)
	case *time.Duration:
		preset, _ := time.ParseDuration(d.Default)
		least, _ := time.ParseDuration(d.Low)
		if d.Above {
			least++
		}
		return Time(to, d.Name, preset, d.Doc, least)
	case *string:
		switch {
		case d.Values != nil:
			return One(to, d.Name, d.Default, d.Doc, OneOf(d.Values))
		case strings.Contains(d.Doc, "`file`") || strings.Contains(d.Doc, "`image`"):
			return File(to, d.Name, d.Doc)
		}
		return Text(to, d.Name, d.Default, d.Doc)
	}
	return nil
}
