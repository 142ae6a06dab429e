// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// peer is who is at the other end of a unix socket (SO_PEERCRED, unix(7)), by the name of the user; all tells that this
// is root, or the server's own user. ok is false for other connections.
func peer(conn net.Conn) (name string, all, ok bool) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return "", false, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return "", false, true // a client without a name
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || failed != nil {
		return "", false, true
	}
	name = strconv.FormatUint(uint64(cred.Uid), 10)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return name, cred.Uid == 0 || int(cred.Uid) == os.Geteuid(), true
}
