// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
)

// Errno is an error number of Linux (include/uapi/asm-generic/errno.h). 0 is
// success.
type Errno int

// The error numbers that attaching can end with.
const (
	EPERM      Errno = 1
	ENOENT     Errno = 2
	E2BIG      Errno = 7
	EAGAIN     Errno = 11
	ENOMEM     Errno = 12
	EFAULT     Errno = 14
	EBUSY      Errno = 16
	EEXIST     Errno = 17
	ENODEV     Errno = 19
	EINVAL     Errno = 22
	EOPNOTSUPP Errno = 95
)

var errnoNames = map[Errno]string{
	0: "0", EPERM: "EPERM", ENOENT: "ENOENT", E2BIG: "E2BIG", EAGAIN: "EAGAIN", ENOMEM: "ENOMEM", EFAULT: "EFAULT",
	EBUSY: "EBUSY", EEXIST: "EEXIST", ENODEV: "ENODEV", EINVAL: "EINVAL", EOPNOTSUPP: "EOPNOTSUPP",
}

// String is the number's name.
func (e Errno) String() string {
	if s, ok := errnoNames[e]; ok {
		return s
	}
	return fmt.Sprintf("errno %d", int(e))
}

// Error is a refusal: the kernel's number, the rule in words, and where the rule
// stands.
type Error struct {
	Errno  Errno
	Ops    string       // whose request it was
	Record records.Addr // which record it was about, 0 for none
	Why    string
	Source string // function and release
	Err    error  // what it rests on; may be nil
}

func (e *Error) Error() string {
	s := "-" + e.Errno.String() + ": "
	if e.Ops != "" {
		s += "ops " + e.Ops + ": "
	}
	if e.Record != 0 {
		s += "record " + e.Record.String() + ": "
	}
	s += e.Why
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap is what the refusal rests on.
func (e *Error) Unwrap() error { return e.Err }

// Is tells whether the refusal has an error number.
func (e *Error) Is(target error) bool { return target == e.Errno }

// refuse makes the refusal of an ops.
func refuse(errno Errno, ops *Ops, why, source string) *Error {
	return &Error{Errno: errno, Ops: ops.Name, Why: why, Source: source}
}

// at says which record a refusal is about.
func (e *Error) at(a records.Addr) *Error {
	e.Record = a
	return e
}

// Error makes an Errno an error by itself: what a store into text may fail with.
func (e Errno) Error() string { return "-" + e.String() }

// UnmarshalText finds an error number by its name; "0" is success.
func (e *Errno) UnmarshalText(text []byte) error {
	for known, name := range errnoNames {
		if name == string(text) {
			*e = known
			return nil
		}
	}
	return fmt.Errorf("tracers: %q is the name of no error number", text)
}
