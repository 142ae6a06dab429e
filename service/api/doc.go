// SPDX-License-Identifier: Apache-2.0

// Package api answers HTTP for a service: JSON under /v1/, events as a stream,
// metrics, health. openapi.json is the reference; a test holds every route and
// every answer against it.
//
// A Handler exists before the machine runs and after it stopped: Ready and Drain say when, and
// /readyz tells. A token tells who asks ([Tokens]); without tokens, only browsers' pages of this
// very server and programs on this machine are answered. No name of a file ever comes from a
// request.
package api
