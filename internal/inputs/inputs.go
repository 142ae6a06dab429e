// SPDX-License-Identifier: Apache-2.0

// Package inputs says where the files are that a request names, and how an error names a
// place in one. Files are where the request says, but for a worker, which does on one machine
// what was asked on another: rows must name the files as the request does, and their contents
// came by another way.
package inputs

import "sync"

var (
	mu     sync.RWMutex
	copies map[string]string // where each file is, by its name; nil: every file is where its name says
	busy   sync.Mutex        // held while files are elsewhere
)

// Place is where a file is.
func Place(name string) string {
	mu.RLock()
	defer mu.RUnlock()
	if copies == nil {
		return name
	}
	return copies[name] // "" is nowhere: a worker reads nothing else
}

// Elsewhere says where the files of a request are, by name, until back is called. Others who
// call it wait for that.
func Elsewhere(files map[string]string) (back func()) {
	busy.Lock()
	set(files)
	return func() {
		set(nil)
		busy.Unlock()
	}
}

func set(files map[string]string) {
	mu.Lock()
	defer mu.Unlock()
	copies = files
}
