// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// moduleRace is SECONDS:FILE:FILE: CPU 1 loads and unloads the first module, and CPU 0 the second, for so long. On CPU 0
// another process takes and gives back memory.
const moduleRace = "module-race"

func race(arg string) (*action, error) {
	words := strings.Split(arg, ":")
	n, err := strconv.Atoi(words[0])
	if err != nil || len(words) != 3 {
		return nil, fmt.Errorf("%q: want seconds and two files", arg)
	}
	again, err := reload(words[2])
	if err != nil {
		return nil, err
	}
	return &action{off: func() error { return nil }, on: func() error {
		if err := errors.Join(another("load", words[1]), another("churn", "0")); err != nil {
			return err
		}
		for end := time.Now().Add(time.Duration(n) * time.Second); time.Now().Before(end); {
			if err := again(); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// load loads and unloads a module on CPU 1 until the machine ends.
func load(file string) {
	again, err := reload(file)
	err = errors.Join(err, pin(1))
	for err == nil {
		err = again()
	}
	say("fail", err.Error())
	os.Exit(1)
}

// churn has the kernel make page tables, and free them, until the machine ends.
func churn(cpu string) {
	const tables, reach = 64, 2 << 20 // of a table of page table entries
	n, err := strconv.Atoi(cpu)
	const nice = 10
	for err = errors.Join(err, pin(n), syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)); err == nil; {
		var b []byte
		if b, err = syscall.Mmap(-1, 0, tables*reach, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE); err == nil {
			for at := 0; at < len(b); at += reach {
				b[at] = 1
			}
			err = syscall.Munmap(b)
		}
	}
	say("fail", err.Error())
	os.Exit(1)
}

// reload is what loads and unloads a module. One that finds no device is unloaded by the kernel, all its text patched.
func reload(file string) (func() error, error) {
	text, err := os.ReadFile("/" + file)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := initModule(file, text)
		if errors.Is(err, syscall.ENODEV) {
			return nil
		}
		if err == nil {
			err = unload(moduleName(file))
		}
		return err
	}, nil
}
