// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
)

// notify tells the service manager how far this process is (sd_notify(3)), if NOTIFY_SOCKET
// names a socket; a name that begins with @ is an abstract one.
func notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(state))
	return err
}
