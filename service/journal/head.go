// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
)

// headName is the file that knows the last frame that was acknowledged. It is written behind
// each sync of the log and not synced itself, which would cost as much as the log does: a
// head that is older than the log, or missing, says nothing. One that knows of more than
// the log has says that what was acknowledged is gone: of a log that lost its end, or of
// which the last frame was damaged, nothing else can tell it from one that was cut off by the
// power. It has two places, written in turn, so that one is whole at any time.
const headName = "textpoke.last"

const headPlace = 512 // a sector: what is written to it is written or not

// head is the open file.
type head struct {
	Handle
	place int64 // which is written next
}

// openHead opens the head, and makes it where it is missing; number is 0 where it says nothing.
func openHead(d Disk) (h *head, number uint64, l link, err error) {
	h = &head{}
	h.Handle, err = d.Open(headName)
	if errors.Is(err, fs.ErrNotExist) {
		h.Handle, err = d.Create(headName)
	}
	if err != nil {
		return nil, 0, l, err
	}
	b, err := readAll(h)
	if err != nil {
		return nil, 0, l, errors.Join(err, h.Close())
	}
	for place := range int64(2) {
		if f, ok := parseFrame(b[min(place*headPlace, int64(len(b))):]); ok && f.number > number {
			number, l, h.place = f.number, f.link, 1-place
		}
	}
	return h, number, l, nil
}

// put notes that a frame is acknowledged.
func (h *head) put(number uint64, l link) error {
	_, err := h.WriteAt(appendFrame(nil, frame{number: number, link: l, payload: []byte("{}")}), h.place*headPlace)
	h.place = 1 - h.place
	return err
}

// readAll is the bytes of a file.
func readAll(f Handle) ([]byte, error) {
	size, err := f.Size()
	if err != nil || size == 0 {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if n == len(b) {
		err = nil
	}
	return b[:n], err
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

func unhex(into, text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err == nil && copy(into, b) != len(into) {
		err = fmt.Errorf("%q: want %d bytes", text, len(into))
	}
	return err
}
