// SPDX-License-Identifier: Apache-2.0

package api

import "testing"

// TestPeer: root and the server's user may do everything, another user what is its own, somebody unknown nothing.
func TestPeer(t *testing.T) {
	for _, c := range []struct {
		name    string
		all     bool
		need    Access
		clients int // -1: refused
	}{
		{"root", true, Full, 0}, {"ann", false, Open, 0}, {"ann", false, Read, 1}, {"ann", false, Own, 1}, {"ann", false, Full, -1},
		{"", false, Read, -1}, {"", false, Open, 0},
	} {
		clients, err := ofPeer(c.name, c.all, c.need)
		if (err != nil) != (c.clients < 0) || err == nil && len(clients) != c.clients || len(clients) == 1 && clients[0] != c.name {
			t.Errorf("%+v: %v, %v", c, clients, err)
		}
	}
}
