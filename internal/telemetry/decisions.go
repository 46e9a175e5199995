package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/disk"
	"signalbox/internal/option"
)

// DecisionOptions configures the decision log: the decision for each request and the signals it was
// based on, as one JSON object per line. `signalbox replay` reads it.
type DecisionOptions struct {
	// File is the file to which decisions are written, readable by its owner only. Each process
	// needs a file of its own. A file that was moved or removed is created again within a second,
	// or at once on SIGHUP. A relative path resolves against the folder of the configuration.
	// Empty, the default, disables the decision log. Restart needed.
	File string `yaml:"file"`
	// Sample is the share of requests that are logged, 0 to 1. Default 1. Restart needed.
	Sample float64 `yaml:"sample"`
	// MaxBytes is the size at which the file is renamed to FILE.1 and a new one is started. At
	// least 64KiB. Default 100MiB. Restart needed.
	MaxBytes option.Bytes `yaml:"max_bytes"`
	// Backups is the number of renamed files that are kept; FILE.1 is the newest. 0 to 100. Default
	// 3. Restart needed.
	Backups int `yaml:"backups"`
	// Headers selects how the values of request headers that rules refer to are logged. hash lets
	// replay compare them with the values in a configuration and reveals nothing else; literal logs
	// them as they are. Headers whose names suggest a credential (key, token, secret, auth, cookie,
	// session, signature, password, credential) are always hashed. Default hash. Restart needed.
	Headers string `yaml:"headers" words:"hash literal"`
	// To receives the lines in place of File: whole lines, several at a time, from one goroutine.
	// If nil, they are written to File.
	To io.Writer `yaml:"-"`
}

// How header values are logged.
const (
	HeadersHashed  = "hash"
	HeadersLiteral = "literal"
)

// minDecisionBytes prevents renames after every few lines.
const minDecisionBytes = 64 << 10

// DefaultDecisionOptions returns the options of an empty section, which logs no decisions.
func DefaultDecisionOptions() DecisionOptions {
	return DecisionOptions{Sample: 1, MaxBytes: 100 << 20, Backups: 3, Headers: HeadersHashed}
}

// check reports every invalid option to p, with a prefix for each field.
func (o DecisionOptions) check(p *option.Problems, prefix string) {
	option.Between(p, prefix+"sample", o.Sample, 0, 1)
	if o.MaxBytes < minDecisionBytes {
		p.Addf(prefix+"max_bytes", "%d is less than 64KiB", o.MaxBytes)
	}
	option.Between(p, prefix+"backups", o.Backups, 0, 100)
	if o.Headers != HeadersHashed && o.Headers != HeadersLiteral {
		p.Addf(prefix+"headers", "%q is neither %s nor %s", o.Headers, HeadersHashed, HeadersLiteral)
	}
}

// Line is one entry of the decision log. It must not be changed after it was offered.
type Line interface {
	// AppendLine appends the entry to b, without a line break, and returns the longer slice, also
	// in case of an error. It runs on the log's goroutine.
	AppendLine(b []byte) ([]byte, error)
	// Held returns the approximate number of bytes that the entry keeps in memory until it is
	// written.
	Held() int64
}

// The limits of the queue. A full queue drops the new line: a request never waits for the disk.
const (
	decisionQueue = 1024     // lines
	decisionHeld  = 32 << 20 // bytes that they hold
)

// decisionBatch is the amount that is collected before it is written while lines keep arriving.
const decisionBatch = 64 << 10

// Decisions is the decision log. A nil one logs nothing. Its methods are safe for concurrent use.
// It owns one goroutine, which encodes, writes and renames; Telemetry.Shutdown ends it after the
// last line was written.
type Decisions struct {
	opts    DecisionOptions
	prompts atomic.Bool
	log     *slog.Logger
	count   func(result string, n int64)
	now     func() time.Time

	queue  chan Line
	held   atomic.Int64
	closed atomic.Bool
	stop   chan struct{}
	again  chan struct{} // holds an element if the file must be reopened
	once   sync.Once
	done   chan struct{}

	// The fields below belong to the goroutine.
	file    *os.File
	info    os.FileInfo // of file
	looked  time.Time   // when File was last checked to be this file
	size    int64
	plain   bool      // a regular file, which can be renamed
	stuck   bool      // the last rename failed, and this was logged
	retry   time.Time // when to retry, while stuck
	torn    bool      // the last write ended inside a line
	failing bool      // the last write failed, and this was logged
	shared  bool      // another process uses the file, and this was logged
	batch   []byte
	lines   int64 // in batch
}

// openDecisions opens the file and starts the writer.
func openDecisions(o DecisionOptions, prompts bool, log *slog.Logger, m *Metrics) (*Decisions, error) {
	d := &Decisions{
		opts: o, log: log, count: m.DecisionsLogged, now: time.Now,
		queue: make(chan Line, decisionQueue), again: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	d.prompts.Store(prompts)
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("decisions: %w", err)
	}
	go d.run()
	return d, nil
}

// Wanted reports whether the next request is to be logged: always, or for the sampled share.
func (d *Decisions) Wanted() bool {
	return d != nil && (d.opts.Sample >= 1 || rand.Float64() < d.opts.Sample) //nolint:gosec // a sample, not a secret
}

// Prompts reports whether the text of requests may be logged.
func (d *Decisions) Prompts() bool { return d.prompts.Load() }

// ForbidPrompts stops the logging of request texts, also for lines that are not encoded yet.
func (d *Decisions) ForbidPrompts() {
	if d != nil {
		d.prompts.Store(false)
	}
}

// LiteralHeaders reports whether header values may be logged unchanged.
func (d *Decisions) LiteralHeaders() bool { return d.opts.Headers == HeadersLiteral }

// Offer submits a line without blocking. It returns false if the queue is full or the log is
// closed, and counts the line as dropped.
func (d *Decisions) Offer(l Line) bool {
	held := l.Held()
	if d.held.Add(held) <= decisionHeld && !d.closed.Load() {
		select {
		case d.queue <- l:
			return true
		default:
		}
	}
	d.held.Add(-held)
	d.count("dropped", 1)
	return false
}

// Reopen opens the file again if its name now refers to another file, or none, for example after
// logrotate has moved it. Without Reopen, this is detected with the next lines, within a second.
func (d *Decisions) Reopen() {
	if d == nil {
		return
	}
	select {
	case d.again <- struct{}{}:
	default: // already requested
	}
}

// shutdown writes all offered lines and closes the file.
func (d *Decisions) shutdown(ctx context.Context) error {
	d.closed.Store(true)
	d.once.Do(func() { close(d.stop) })
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("decisions: write the last lines: %w", ctx.Err())
	}
}

func (d *Decisions) run() {
	defer close(d.done)
	defer func() {
		if d.file != nil {
			_ = d.file.Close() // every write was checked
		}
	}()
	for {
		select {
		case l := <-d.queue:
			d.add(l)
		case <-d.again:
			d.looked = time.Time{}
			if d.follow(); d.file == nil {
				_ = d.open() // on failure the next line retries, and logs
			}
		case <-d.stop:
			d.drain()
			return
		}
	}
}

// add encodes a line and the lines waiting in the queue, and writes them.
func (d *Decisions) add(l Line) {
	for {
		d.encode(l)
		if len(d.batch) >= decisionBatch {
			d.write()
		}
		select {
		case l = <-d.queue:
		default:
			d.write()
			return
		}
	}
}

// drain writes what is still in the queue.
func (d *Decisions) drain() {
	select {
	case l := <-d.queue:
		d.add(l)
	default:
	}
}

func (d *Decisions) encode(l Line) {
	before := len(d.batch)
	defer d.held.Add(-l.Held())
	var err error
	if d.batch, err = l.AppendLine(d.batch); err != nil {
		d.batch = d.batch[:before]
		d.count("failed", 1)
		return
	}
	d.batch = append(d.batch, '\n')
	d.lines++
}

// write writes the batch to the file, which is renamed first if the batch would make it too long.
func (d *Decisions) write() {
	if d.lines == 0 {
		return
	}
	d.follow()
	err := d.rotate()
	if err == nil {
		err = d.put()
	}
	if err != nil {
		d.count("failed", d.lines)
		if !d.failing {
			d.log.Error("decisions are not logged", slog.String("cause", err.Error()))
		}
	} else {
		d.count("written", d.lines)
	}
	d.failing = err != nil
	d.batch, d.lines = d.batch[:0], 0
	if cap(d.batch) > 16*decisionBatch {
		d.batch = nil // after a very long line
	}
}

// put appends the batch. A partial line left by a failed write is terminated, so that it does not
// corrupt the next line.
func (d *Decisions) put() error {
	if d.opts.To != nil {
		_, err := d.opts.To.Write(d.batch)
		return err
	}
	if d.file == nil {
		if err := d.open(); err != nil {
			return err
		}
	}
	if d.torn {
		n, err := d.file.WriteString("\n")
		d.size += int64(n)
		if err != nil {
			return err
		}
		d.torn = false
	}
	n, err := d.file.Write(d.batch)
	d.size += int64(n)
	d.torn = err != nil && n > 0 && d.batch[n-1] != '\n'
	return err
}

// open opens the file for appending. If the file ends inside a line, for example after a crash, a
// new line is started.
func (d *Decisions) open() error {
	if d.opts.To != nil {
		return nil
	}
	f, err := os.OpenFile(d.opts.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	d.file, d.info, d.looked = f, info, d.now()
	d.size, d.plain, d.torn = info.Size(), info.Mode().IsRegular(), false
	if !d.plain {
		return nil
	}
	if err := disk.Try(f); errors.Is(err, disk.ErrHeld) && !d.shared {
		d.shared = true
		d.log.Warn("another process writes this decision log too, and each of them renames it: give each a file of its own",
			slog.String("file", d.opts.File))
	}
	if err := f.Chmod(0o600); err != nil { // it may be older than this process, and readable by others
		d.file = nil
		return errors.Join(err, f.Close())
	}
	d.torn = d.size > 0 && endsInsideLine(d.opts.File, d.size)
	return nil
}

// lookEvery is the interval at which writes check whether the file was moved.
const lookEvery = time.Second

// follow closes a file that was moved or removed.
func (d *Decisions) follow() {
	if d.file == nil || !d.plain || d.now().Sub(d.looked) < lookEvery {
		return
	}
	d.looked = d.now()
	at, err := os.Stat(d.opts.File)
	switch {
	case err == nil && os.SameFile(at, d.info):
		d.size = at.Size() // it may have been truncated
		return
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return
	}
	_ = d.file.Close() // every write was checked
	d.file = nil
}

// endsInsideLine reports whether a file's last byte is no line break.
func endsInsideLine(name string, size int64) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, size-1)
	return err == nil && last[0] != '\n'
}

// renameAgain is the delay before a failed rename is retried.
const renameAgain = time.Minute

// rotate starts a new file if the batch would make this one too long. A file that cannot be renamed
// grows beyond the limit, so that no line is lost.
func (d *Decisions) rotate() error {
	if !d.plain || d.file == nil || d.size == 0 || d.size+int64(len(d.batch)) <= int64(d.opts.MaxBytes) {
		return nil
	}
	if d.stuck && d.now().Before(d.retry) {
		return nil
	}
	if err := d.rename(); err != nil {
		if !d.stuck {
			d.log.Warn("the decision log cannot be renamed and grows beyond max_bytes", slog.String("cause", err.Error()))
		}
		d.stuck, d.retry = true, d.now().Add(renameAgain)
		return nil
	}
	d.stuck = false
	err := d.file.Close()
	d.file = nil
	return errors.Join(err, d.open())
}

// rename renames FILE to FILE.1, FILE.1 to FILE.2 and so on. The last one is removed.
func (d *Decisions) rename() error {
	for i := d.opts.Backups; i > 0; i-- {
		from := d.opts.File
		if i > 1 {
			from += "." + strconv.Itoa(i-1)
		}
		if err := os.Rename(from, d.opts.File+"."+strconv.Itoa(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if d.opts.Backups == 0 {
		if err := os.Remove(d.opts.File); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
