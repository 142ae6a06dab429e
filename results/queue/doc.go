// SPDX-License-Identifier: Apache-2.0

// Package queue hands the points of a sweep to workers, on this machine or on others, and
// collects what they come to. The queue is NATS JetStream: servers that keep messages.
//
// A [Run] is what all points have in common: the request, the files that it
// reads, by their contents, and which programs may do it. A point is known by its number
// and its key. What is kept where, and what each name stands for:
//
//	textpoke-jobs    a point that is to be done: textpoke.job.PROGRAM.RUN.POINT
//	textpoke-rows    what one came to:           textpoke.row.RUN.POINT
//	textpoke-files   the description of a run, its files, and rows too large for a message
//
// A subject holds one message, and a second one is refused. So a job that is published again
// is there once, and a point that was done twice has one row, the first. That holds for ever,
// where a message's identifier is remembered for minutes, and would keep a job from being
// published again that was taken back.
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
