// SPDX-License-Identifier: Apache-2.0

// Package queue hands the points of a sweep to workers, on this machine or on others, and
// collects their rows. The queue is NATS JetStream: servers that keep messages.
//
// A [Run] is what all points have in common: the request, the files that it
// reads, by their contents, and which programs may do it. A point is known by its number
// and its key. The servers keep three things:
//
//	textpoke-jobs    a point that is to be done: textpoke.job.PROGRAM.RUN.POINT
//	textpoke-rows    what one came to:           textpoke.row.RUN.POINT
//	textpoke-files   the description of a run, its files, and rows too large for a message
//
// A subject holds one message, and a second one is refused. So a job that is published again
// is there once, and a point that was done twice has one row, the first. That holds for ever.
// A message's identifier would be remembered for minutes only, and a job that was taken back
// could not be published again meanwhile.
//
// A worker takes jobs of its own program alone: the subject says whose they are. It gives
// notice while it works ([Options.AckWait]), publishes the row, and when a server has said
// that it has it, takes the job from the queue. Killed before that, it leaves a job that goes
// to another one; killed in between, it leaves a job whose row is there.
//
// The submitter of a run keeps looking for missing rows: a job that was lost with a
// server's disk is published again. When it has all rows, everything about the run is removed.
// The servers remove the rest after thirty days.
package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/textpoke/textpoke/internal/choice"
)

const (
	jobsStream  = "textpoke-jobs"
	rowsStream  = "textpoke-rows"
	filesBucket = "textpoke-files"

	// keep is how long servers keep messages.
	keep = 30 * 24 * time.Hour
	// patience is how long servers may take to agree who of them leads.
	patience = 20 * time.Second
	// pause is how long it takes until what failed is tried again.
	pause = 100 * time.Millisecond
)

// Options are one end of the queue.
type Options struct {
	// Program says which programs make the same rows: those with the same text.
	Program string
	// Name is who this is, for people: a host and a process.
	Name string
	// AckWait is how long a job stays with a worker that gives no notice. Default: 30 s.
	AckWait time.Duration
	// Tries is how often a point is begun, at most. One that no worker survives is lost: see
	// [points.LostError]. Default: 5.
	Tries int
	// Access is what the servers ask for.
	Access Access
	// Waiting is called once where no server answers, and Connect waits for one then; nil: that
	// is an error.
	Waiting func()
}

// Access is the token or the certificate that servers ask for. The zero Access is none.
type Access struct {
	Token       string // a word
	Credentials string // file of a user's token and key, as nsc writes it
	CA          string // file with the authorities that the servers' certificates are of
	Cert, Key   string // files of a certificate of one's own, and of its key
}

func (a *Access) options() (all []nats.Option) {
	if a.Token != "" {
		all = append(all, nats.Token(a.Token))
	}
	if a.Credentials != "" {
		all = append(all, nats.UserCredentials(a.Credentials))
	}
	if a.CA != "" {
		all = append(all, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		all = append(all, nats.ClientCert(a.Cert, a.Key))
	}
	return all
}

// Queue is a connection to the servers.
type Queue struct {
	Options
	nc    *nats.Conn
	js    jetstream.JetStream
	jobs  jetstream.Stream
	rows  jetstream.Stream
	files jetstream.ObjectStore
}

// ErrNoServer means that no server answers at the address.
var ErrNoServer = errors.New("no server of a queue answers")

// Connect connects to servers, nats://HOST:PORT or several of these with commas between them.
func Connect(ctx context.Context, url string, o Options) (*Queue, error) {
	o.AckWait, o.Tries = cmp.Or(o.AckWait, 30*time.Second), cmp.Or(o.Tries, 5)
	nc, err := o.dial(ctx, url)
	if err != nil {
		return nil, err
	}
	q := &Queue{Options: o, nc: nc}
	if q.js, err = jetstream.New(nc); err == nil {
		err = q.persist(ctx, q.streams)
	}
	if err != nil {
		defer nc.Close() // its address goes into the error
		return nil, fmt.Errorf("queue %s: %w", nc.ConnectedUrlRedacted(), err)
	}
	return q, nil
}

// dial connects, and waits for a server where it may.
func (o *Options) dial(ctx context.Context, url string) (*nats.Conn, error) {
	options := append(o.Access.options(), nats.Name("textpoke "+o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(pause),
		nats.RetryOnFailedConnect(false), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	for told := false; ; told = true {
		nc, err := nats.Connect(url, options...)
		unreachable := errors.Is(err, nats.ErrNoServers) || errors.As(err, new(net.Error))
		switch {
		case err == nil:
			return nc, nil
		case !unreachable:
			return nil, err
		case o.Waiting == nil:
			return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
		case !told:
			o.Waiting()
		}
		if sleep(ctx, 10*pause) != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
		}
	}
}

// Close ends the connection.
func (q *Queue) Close() { q.nc.Close() }

// streams finds the streams, or makes them.
func (q *Queue) streams(ctx context.Context) (err error) {
	one := jetstream.StreamConfig{
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1, MaxAge: keep,
		Storage: jetstream.FileStorage, Replicas: q.replicas(), AllowDirect: true,
	}
	jobs, rows := one, one
	jobs.Name, jobs.Subjects, jobs.Retention = jobsStream, []string{"textpoke.job.>"}, jetstream.WorkQueuePolicy
	jobs.Description = "points of sweeps that are to be done"
	rows.Name, rows.Subjects = rowsStream, []string{"textpoke.row.>"}
	rows.Description = "what points of sweeps came to"
	if q.jobs, err = q.stream(ctx, jobs); err != nil {
		return err
	}
	if q.rows, err = q.stream(ctx, rows); err != nil {
		return err
	}
	q.files, err = q.js.ObjectStore(ctx, filesBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		q.files, err = q.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: filesBucket, Description: "what sweeps read", TTL: keep, Storage: jetstream.FileStorage,
			Replicas: q.replicas(),
		})
	}
	return err
}

func (q *Queue) stream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := q.js.Stream(ctx, c.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = q.js.CreateStream(ctx, c)
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was as quick
		s, err = q.js.Stream(ctx, c.Name)
	}
	return s, err
}

// replicas is on how many servers everything is kept: three where there are as many, so that
// one of them may be lost.
func (q *Queue) replicas() int {
	if len(q.nc.Servers()) >= 3 {
		return 3
	}
	return 1
}

// persist tries until it works, as servers come and go.
func (q *Queue) persist(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		switch err := once(ctx, try); {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
			sleep(ctx, pause) != nil && errors.Is(err, nats.ErrNoResponders): // servers without JetStream say nothing
			return fmt.Errorf("%w: start the server with -js, or textpoke-queue", err)
		case ctx.Err() != nil:
			return err
		}
	}
}

// once tries for a few seconds.
func once(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return try(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// refused tells whether a message was refused because its subject has one.
func refused(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return true
	}
	return api.ErrorCode == storeFailed && api.Description == "maximum messages per subject exceeded"
}

// storeFailed is JSStreamStoreFailedF of the server's errors, with its reason as description
// (nats-server 2.15, server/errors.json).
const storeFailed = 10077

// token is a part of a subject, of any text.
func token(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Run is the shared part of a sweep's points: the request, its files, and the number of points.
type Run struct {
	Program string            `json:"program"`
	Request choice.Request    `json:"request"`
	Inputs  map[string]string `json:"inputs"` // SHA-256 of each file that is read, by its name
	Points  int               `json:"points"`
	Keys    string            `json:"keys"` // SHA-256 of all points' keys
}

// id is the run's name: those of equal sweeps are equal.
func (r *Run) id() string {
	text, err := json.Marshal(r)
	if err != nil { // the types rule it out
		return ""
	}
	return token(string(text))
}

// job is a point that is to be done.
type job struct {
	Run   string `json:"run"`
	Point int    `json:"point"` // its number, from 0
	Key   string `json:"key"`   // what it is
	Mark  string `json:"mark"`  // of who has submitted it
}

// outcome is the result of a point.
type outcome struct {
	Key    string          `json:"key"`
	Worker string          `json:"worker"`
	Nanos  int64           `json:"nanos"` // that it took
	Data   json.RawMessage `json:"data,omitempty"`
	Object string          `json:"object,omitempty"` // where Data is that has no room here
	Lost   string          `json:"lost,omitempty"`   // why there is none
	Mark   string          `json:"mark,omitempty"`   // the job's
}

func rowSubject(run string, point int) string { return fmt.Sprintf("textpoke.row.%s.%d", run, point) }

func rowSubjects(run string) string { return "textpoke.row." + run + ".*" }

func overSubject(run string) string { return "textpoke.over." + run }

func objectName(run, what string) string { return run + "/" + what }
