// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
)

// A log is frames. Each has its number, how many frames were on the disk when it was written,
// and a link: a hash of it and of the link before. So a frame that is missing, exchanged or
// older than it should be is found by the next one, and one whose bits have changed by its sum.
//
//	length  uint32  of the payload
//	sum     uint32  CRC-32C of all that follows
//	number  uint64
//	synced  uint64  all frames before this number were on the disk
//	link    16 bytes, of SHA-256
//	payload JSON, an entry
const frameHeader = 4 + 4 + 8 + 8 + linkSize

const linkSize = 16

// maxPayload bounds what is taken for a length.
const maxPayload = 1 << 28

type link [linkSize]byte

// MarshalText is what a link looks like in a payload.
func (l link) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(l[:])), nil }

// UnmarshalText reads that.
func (l *link) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err == nil && copy(l[:], b) != linkSize {
		err = fmt.Errorf("%q: want %d bytes", text, linkSize)
	}
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is one frame after reading.
type frame struct {
	number, synced uint64
	link           link
	payload        []byte
	size           int // with its header
}

// after is the link of a frame that follows one with link l.
func (l link) after(number uint64, payload []byte) (next link) {
	h := sha256.New()
	h.Write(l[:])
	h.Write(binary.BigEndian.AppendUint64(nil, number))
	h.Write(payload)
	copy(next[:], h.Sum(nil))
	return next
}

// appendFrame writes one behind those in b.
func appendFrame(b []byte, f frame) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.payload)))
	sum := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, f.number)
	b = binary.BigEndian.AppendUint64(b, f.synced)
	b = append(append(b, f.link[:]...), f.payload...)
	binary.BigEndian.PutUint32(b[sum:], crc32.Checksum(b[sum+4:], castagnoli))
	return b
}

// frameLen is how long the frame at the beginning of b says that it is.
func frameLen(b []byte) int {
	if len(b) < 4 {
		return 0
	}
	return frameHeader + int(min(binary.BigEndian.Uint32(b), maxPayload))
}

// parseFrame reads the frame at the beginning of b.
func parseFrame(b []byte) (f frame, ok bool) {
	if len(b) < frameHeader {
		return f, false
	}
	n := int(binary.BigEndian.Uint32(b))
	if n == 0 || n > maxPayload || n > len(b)-frameHeader ||
		crc32.Checksum(b[8:frameHeader+n], castagnoli) != binary.BigEndian.Uint32(b[4:]) {
		return f, false
	}
	f = frame{number: binary.BigEndian.Uint64(b[8:]), synced: binary.BigEndian.Uint64(b[16:]),
		payload: b[frameHeader : frameHeader+n], size: frameHeader + n}
	copy(f.link[:], b[24:])
	return f, true
}

// nextFrame finds the first whole frame with a number behind that of a damaged one and before
// another: where it begins, or -1.
func nextFrame(b []byte, damaged, before uint64) int {
	for at := 0; at+frameHeader <= len(b); at++ {
		if n := binary.BigEndian.Uint64(b[at+8:]); n <= damaged || n >= before {
			continue
		}
		if _, ok := parseFrame(b[at:]); ok {
			return at
		}
	}
	return -1
}

// decodeEntry reads a payload, strictly: it refuses fields that it does not know.
func decodeEntry(payload []byte) (e entry, err error) {
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	err = dec.Decode(&e)
	return e, err
}

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
