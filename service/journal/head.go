// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
)

// headName is the file that knows the last acknowledged frame. It is written after each sync of the
// log and not synced itself, which would cost as much as the log's sync. A head that is older than
// the log, or missing, says nothing. A head that knows more frames than the log proves that
// acknowledged frames are gone: without it, a log that lost its end or has a damaged last frame
// looks like one that a power cut left unfinished. The file has two places, written in turn, so
// that one of them is always whole.
const headName = "textpoke.last"

const headPlace = 512 // a sector, which a disk writes whole or not at all

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
