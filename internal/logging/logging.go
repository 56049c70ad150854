// Package logging makes the log of a program.
//
// In: the flag --log-format, and the signals SIGUSR1 and SIGUSR2 while the program runs. Out: a slog.Logger, which the
// library for the API server (client-go) writes to, too.
package logging

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
)

// Options say how a program logs.
type Options struct {
	// Verbose has the log begin with messages for debugging.
	Verbose bool
	format  string
}

// AddFlag registers --log-format. The flag for Verbose is the program's own. Call CheckFormat when they are parsed.
func AddFlag(f *flag.FlagSet) *Options {
	o := &Options{}
	f.StringVar(&o.format, "log-format", "text", "text, with a line of key=value a message, or json, with an object")
	return o
}

// CheckFormat refuses formats that do not exist.
func (o *Options) CheckFormat() error {
	if o.format != "text" && o.format != "json" {
		return fmt.Errorf("--log-format %q: give text or json", o.format)
	}
	return nil
}

// StartLog returns the log. Until ctx ends SIGUSR1 turns messages for debugging on, and SIGUSR2 off.
func (o *Options) StartLog(ctx context.Context, to io.Writer) *slog.Logger {
	level := &slog.LevelVar{}
	if o.Verbose {
		level.Set(slog.LevelDebug)
	}
	log := slog.New(o.newHandler(to, level))
	klog.SetSlogLogger(log.With("from", "client-go"))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go followSignals(ctx, signals, level, log)
	return log
}

func (o *Options) newHandler(to io.Writer, level slog.Leveler) slog.Handler {
	if o.format == "json" {
		return slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level, ReplaceAttr: writeAsText})
	}
	return slog.NewTextHandler(to, &slog.HandlerOptions{Level: level})
}

// writeAsText has JSON show durations and states as text shows them, not as numbers.
func writeAsText(_ []string, a slog.Attr) slog.Attr {
	if s, is := a.Value.Any().(fmt.Stringer); is && a.Value.Kind() != slog.KindTime {
		a.Value = slog.StringValue(s.String())
	}
	return a
}

func followSignals(ctx context.Context, signals <-chan os.Signal, level *slog.LevelVar, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			next := slog.LevelInfo
			if s == syscall.SIGUSR1 {
				next = slog.LevelDebug
			}
			level.Set(next)
			log.Info("the log's level was changed by a signal", "signal", s.String(), "to", next)
		}
	}
}
