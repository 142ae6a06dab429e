// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger says what people should know on stderr, in sentences.
func (c *common) logger() *zap.Logger { return zap.New(sentences{c.least(), c.err, nil}) }

// serverLog writes structured lines to stderr, for programs that collect them.
func (c *common) serverLog() *zap.Logger {
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.AddSync(c.err), c.least()))
}

// levels are the names that a log level can be given by.
var levels = []string{"debug", "info", "warn", "error"}

// least is the level of the least serious lines.
func (c *common) least() zapcore.Level {
	level, _ := zapcore.ParseLevel(c.level) // one of levels
	return level
}

// sentences is a log for people: a line is what happened, and in brackets what belongs
// to it.
type sentences struct {
	zapcore.LevelEnabler
	w    io.Writer
	with []zapcore.Field
}

func (s sentences) With(fields []zapcore.Field) zapcore.Core {
	s.with = append(s.with[:len(s.with):len(s.with)], fields...)
	return s
}

func (s sentences) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !s.Enabled(e.Level) {
		return checked
	}
	return checked.AddCore(e, s)
}

// spoken are the levels that a line begins with.
var spoken = map[zapcore.Level]string{zapcore.WarnLevel: "warning: ", zapcore.ErrorLevel: "error: "}

func (s sentences) Write(e zapcore.Entry, fields []zapcore.Field) error {
	var details []string
	for _, f := range append(s.with[:len(s.with):len(s.with)], fields...) {
		m := zapcore.NewMapObjectEncoder()
		f.AddTo(m)
		details = append(details, fmt.Sprintf("%s %v", strings.ReplaceAll(f.Key, "_", " "), m.Fields[f.Key]))
	}
	line := "textpoke: " + spoken[e.Level] + e.Message
	if len(details) > 0 {
		line += " (" + strings.Join(details, ", ") + ")"
	}
	_, err := fmt.Fprintln(s.w, strings.ReplaceAll(line, "\n", "; "))
	return err
}

func (sentences) Sync() error { return nil }
