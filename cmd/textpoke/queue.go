// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/choice/flags"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/results/points"
	"github.com/textpoke/textpoke/results/queue"
)

// addressFlag is addresses of a queue. Its text leaves out names and tokens.
type addressFlag struct{ url *string }

func (a addressFlag) Set(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(one)
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return errors.New("want nats://HOST:PORT")
		}
	}
	*a.url = text
	return nil
}

// String is the addresses without what stands before an @, which may be a token.
func (a addressFlag) String() string {
	if a.url == nil { // the flag package asks the zero value
		return ""
	}
	all := strings.Split(*a.url, ",")
	for i, one := range all {
		if u, err := url.Parse(one); err == nil && u.User != nil {
			u.User = url.User("xxxxx")
			all[i] = u.String()
		}
	}
	return strings.Join(all, ",")
}

func (addressFlag) Type() string { return "address" }

// accessFlags is what a queue's servers ask for: files, as arguments can be seen by everybody on the machine.
type accessFlags struct{ token, credentials, ca, cert, key string }

// maxToken is how long a token may be, in bytes.
const maxToken = 4096

// addQueue adds the flags of a queue.
func addQueue(cmd *cobra.Command, c *common, usage string) {
	cmd.Flags().Var(addressFlag{&c.queue}, "queue", usage+": `nats://HOST:PORT`, or several with commas between them")
	a := &c.access
	flags.Bind(cmd.Flags(),
		choice.File(&a.token, "token-file", "`file` with the word that the queue asks for"),
		choice.File(&a.credentials, "credentials", "`file` of a NATS user for the queue, as nsc writes it"),
		choice.File(&a.ca, "tls-ca", "`file` with the authorities that sign the queue's certificates (PEM)"),
		choice.File(&a.cert, "tls-cert", "`file` with the certificate that this program shows the queue (PEM)"),
		choice.File(&a.key, "tls-key", "`file` with its key (PEM)"))
}

// queueFlags are the flags of how a queue is reached, which rows do not depend on.
var queueFlags = []string{"queue", "token-file", "credentials", "tls-ca", "tls-cert", "tls-key"}

// connect connects to the queue. With waiting, it waits for a server.
func (c *common) connect(ctx context.Context, o queue.Options) (*queue.Queue, error) {
	a := c.access
	if (a.cert == "") != (a.key == "") {
		return nil, errors.New("--tls-cert goes with --tls-key")
	}
	o.Program, o.Name = programOf(built), processName()
	o.Access = queue.Access{Credentials: a.credentials, CA: a.ca, Cert: a.cert, Key: a.key}
	if a.token != "" {
		text, err := inputs.Read(a.token, maxToken)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		if o.Access.Token = strings.TrimSpace(string(text)); o.Access.Token == "" {
			return nil, fmt.Errorf("--token-file %s: it is empty", a.token)
		}
	}
	q, err := queue.Connect(ctx, c.queue, o)
	if errors.Is(err, queue.ErrNoServer) {
		return nil, noServer{fmt.Errorf("--queue: %w", err)}
	}
	if err != nil {
		return nil, fmt.Errorf("--queue: %w", err)
	}
	return q, nil
}

// notDone is the answer no where points were lost, after a list of them.
func (c *common) notDone(lost []*points.LostError, all int) error {
	if len(lost) == 0 {
		return nil
	}
	for _, l := range lost {
		fmt.Fprintf(c.streams.err, "textpoke: not done: %v\n", l)
	}
	return noError{fmt.Errorf("%d of %d points were not done", len(lost), all)}
}
