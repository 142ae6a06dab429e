// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// exact refuses bodies that encoding/json mends in silence (https://pkg.go.dev/encoding/json,
// Unmarshal): bytes that are not UTF-8 and halves of surrogate pairs, which would all become
// U+FFFD; fields that are said twice, of which the last would count; and fields that are spelled
// with other capitals. It leaves bodies that are no JSON at all to the decoder.
func exact(body []byte, fields []string) error {
	if !utf8.Valid(body) {
		return badField("", "the body is not UTF-8")
	}
	if half := halfPair(body); half != "" {
		return badField("", "%s is half of a surrogate pair", half)
	}
	if !json.Valid(body) { // a decoder that has failed says for ever that there is more
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return exactValue(dec, "", fields)
}

// exactValue reads one value. fields are those that an object may have, nil for any.
func exactValue(dec *json.Decoder, path string, fields []string) error {
	t, err := dec.Token()
	if err != nil {
		return nil
	}
	switch t {
	case json.Delim('['):
		for i := 0; dec.More(); i++ {
			if err := exactValue(dec, path+"["+strconv.Itoa(i)+"]", nil); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		seen := map[string]bool{}
		for dec.More() {
			name, err := dec.Token()
			key, ok := name.(string)
			if err != nil || !ok {
				return nil
			}
			if err := exactKey(path+key, key, seen, fields); err != nil {
				return err
			}
			if err := exactValue(dec, path+key+".", nil); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, _ = dec.Token() // what closes it; the decoder says what is wrong with it
	return nil
}

func exactKey(path, key string, seen map[string]bool, fields []string) error {
	if seen[key] {
		return badField(path, "is said twice")
	}
	seen[key] = true
	for _, f := range fields {
		if f == key {
			return nil
		}
	}
	for _, f := range fields {
		if strings.EqualFold(f, key) {
			return badField(path, "there is no such field: want %q", f)
		}
	}
	return nil // the decoder knows whether there is one
}

// fieldsOf are the names of a struct's fields in JSON.
func fieldsOf(v any) (names []string) {
	t := reflect.TypeOf(v).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// halfPair is the first \u escape in a JSON text that stands for half of a surrogate
// pair without its other half (RFC 8259, 8.2); "" for none.
func halfPair(body []byte) string {
	const length = len(`\u0000`)
	code := func(i int) rune {
		if i+length > len(body) || body[i] != '\\' || body[i+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(body[i+2:i+length]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		switch c := code(i); {
		case !utf16.IsSurrogate(c):
			i++ // what is escaped may be a backslash
		case utf16.DecodeRune(c, code(i+length)) != utf8.RuneError:
			i += 2*length - 1
		default:
			return string(body[i : i+length])
		}
	}
	return ""
}
