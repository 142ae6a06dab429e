// SPDX-License-Identifier: Apache-2.0

package gdb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxPacket bounds what a server may send at once, in bytes. A register file has less than 2,000 digits, and
// memory is read in pieces.
const maxPacket = 1 << 16

// errPacket is what no server of the protocol sends.
var errPacket = errors.New("no packet of the protocol")

// appendPacket appends $TEXT#SUM. This package's packets need no escapes.
func appendPacket(b []byte, text string) []byte {
	return fmt.Appendf(b, "$%s#%02x", text, sumOf(text))
}

func sumOf(text string) (sum byte) {
	for _, c := range []byte(text) {
		sum += c
	}
	return sum
}

// readPacket reads up to the end of the next packet, skips acknowledgements before it, and gives its text, in which
// escapes and repetitions are undone.
func readPacket(r *bufio.Reader) (string, error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '$' {
			break
		}
		if c != '+' {
			return "", fmt.Errorf("%w: it begins with %q", errPacket, c)
		}
	}
	var raw []byte
	for {
		c, err := r.ReadByte()
		if err != nil {
			return "", unexpected(err)
		}
		if c == '#' {
			break
		}
		if raw = append(raw, c); len(raw) > maxPacket {
			return "", fmt.Errorf("%w: it is longer than %d bytes", errPacket, maxPacket)
		}
	}
	var digits [2]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return "", unexpected(err)
	}
	if sum, err := strconv.ParseUint(string(digits[:]), 16, 8); err != nil || byte(sum) != sumOf(string(raw)) {
		return "", fmt.Errorf("%w: its sum is %02x and it says %q", errPacket, sumOf(string(raw)), digits)
	}
	return plain(raw)
}

// unexpected is an end within a packet.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// plain undoes escapes ("}" and a byte that is xored with 0x20) and repetitions ("*" and a count plus 29).
func plain(raw []byte) (string, error) {
	var out []byte
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c != '}' && c != '*':
			out = append(out, c)
		case i+1 == len(raw), c == '*' && (len(out) == 0 || raw[i+1] < 32 || raw[i+1] > 126):
			return "", fmt.Errorf("%w: %q at %d of %q", errPacket, c, i, raw)
		case c == '}':
			i++
			out = append(out, raw[i]^0x20)
		default:
			i++
			for range raw[i] - 29 {
				out = append(out, out[len(out)-1])
			}
		}
		if len(out) > maxPacket {
			return "", fmt.Errorf("%w: it is longer than %d bytes", errPacket, maxPacket)
		}
	}
	return string(out), nil
}
