package cache

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

var _ Store = (*Redis)(nil)

// Link is a connection to Redis that fails fast while Redis is unreachable. Implementations must be
// safe for concurrent use.
type Link interface {
	// Do runs a call that ends within the time limit budget. While Redis is known to be unreachable
	// it fails immediately.
	Do(ctx context.Context, budget time.Duration, call func(context.Context, rueidis.Client) error) error
	// Listen passes on messages of a channel until ctx is done, and then returns nil. connected is
	// called after every connect. Both functions are called from one goroutine and must be fast.
	Listen(ctx context.Context, channel string, connected func(), heard func(message string)) error
}

// Redis is a Store shared by several processes; each is notified of the others' questions. Its
// keys, P being the prefix:
//
//	P:{answers}:a:KEY   string: an answer
//	P:{answers}:q:KEY   string: its question
//	P:{answers}:end     sorted set of KEYs by expiry
//	P:{answers}:size    hash of sizes by KEY; the field "" is their sum
//	P:av                channel: KEY, time to live and question of a stored answer
//
// It starts no goroutine and does not close its link.
type Redis struct {
	link Link
	o    RedisOptions
	keep *rueidis.Lua

	again chan struct{} // capacity 1: several requests to load again in a row need one load
}

// RedisOptions are options of a Redis. Zero fields take the value of DefaultRedisOptions.
type RedisOptions struct {
	Prefix    string // of every key and of the channel
	MaxAnswer int    // maximum size of one answer in bytes
	// of all answers and questions; beyond it those that expire first are dropped
	MaxBytes int64
	// for reading an answer: a cache that answers late is worth less than a miss
	Budget time.Duration
	Write  time.Duration // for storing one
}

// DefaultRedisOptions returns the prefix cx, answers of 1 MiB, 256 MiB in total, 20 ms to read one
// and 1 s to store one.
func DefaultRedisOptions() RedisOptions {
	return RedisOptions{Prefix: "cx", MaxAnswer: 1 << 20, MaxBytes: 256 << 20, Budget: 20 * time.Millisecond, Write: time.Second}
}

func (o RedisOptions) withDefaults() RedisOptions {
	d := DefaultRedisOptions()
	o.Prefix = cmp.Or(o.Prefix, d.Prefix)
	o.MaxAnswer = cmp.Or(max(o.MaxAnswer, 0), d.MaxAnswer)
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), d.MaxBytes)
	o.Budget = cmp.Or(max(o.Budget, 0), d.Budget)
	o.Write = cmp.Or(max(o.Write, 0), d.Write)
	return o
}

//go:embed keep.lua
var keepScript string

// NewRedis returns a Store that uses a link.
func NewRedis(link Link, o RedisOptions) *Redis {
	return &Redis{link: link, o: o.withDefaults(), keep: rueidis.NewLuaScript("#!lua\n" + keepScript), again: make(chan struct{}, 1)}
}

// Budget returns the time limit for reading an answer.
func (r *Redis) Budget() time.Duration { return r.o.Budget }

// Get returns the answer of a key. Errors are ErrMiss and those of the link; an answer that cannot
// be decoded counts as absent.
func (r *Redis) Get(ctx context.Context, key Key) (*Answer, error) {
	var data []byte
	err := r.link.Do(ctx, r.o.Budget, func(ctx context.Context, c rueidis.Client) error {
		var err error
		data, err = c.Do(ctx, c.B().Get().Key(r.name("a:")+key.String()).Build()).AsBytes()
		if rueidis.IsRedisNil(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	if data == nil {
		return nil, ErrMiss
	}
	a, err := parseAnswer(data, key)
	if err != nil {
		// of another version or key: the next answer replaces it
		return nil, fmt.Errorf("%w: %w", ErrMiss, err)
	}
	return a, nil
}

// Put stores an answer and notifies other processes of its question. Errors are ErrTooLarge and
// those of the link.
func (r *Redis) Put(ctx context.Context, key Key, a *Answer, q *Question, ttl time.Duration) error {
	if a.Size() > r.o.MaxAnswer {
		return ErrTooLarge
	}
	ttl = max(ttl, time.Millisecond)
	data := rueidis.BinaryString(appendAnswer(make([]byte, 0, a.Size()+len(key)), key, a))
	question, message := "", ""
	if q != nil {
		question = rueidis.BinaryString(appendQuestion(nil, key, q))
		message = rueidis.BinaryString((&news{key, *q, ttl}).encode())
	}
	kept := int64(0)
	err := r.link.Do(ctx, r.o.Write, func(ctx context.Context, c rueidis.Client) error {
		var err error
		kept, err = r.keep.Exec(ctx, c, []string{r.name("end"), r.name("size")}, []string{
			key.String(), data, question, strconv.FormatInt(ttl.Milliseconds(), 10), strconv.FormatInt(r.o.MaxBytes, 10),
			r.name("a:"), r.name("q:"), r.channel(), message,
		}).AsInt64()
		return err
	})
	if err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}
	if kept == 0 {
		return ErrTooLarge
	}
	return nil
}

// news is a notification of a question.
type news struct {
	key Key
	q   Question
	ttl time.Duration
}

// Follow reports questions that have an answer: the last most of them at the start and after an
// interruption, and all that are stored meanwhile. learn is called from one goroutine. Follow must
// be called once, and returns nil when ctx is done.
func (r *Redis) Follow(ctx context.Context, most int, learn func(Key, Question, time.Duration)) error {
	heard := make(chan news, 256) // full: dropped; an unknown question is a miss
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.again:
				r.load(ctx, most, learn)
			case n := <-heard:
				learn(n.key, n.q, n.ttl)
			}
		}
	})
	return r.link.Listen(ctx, r.channel(), r.Refresh, func(message string) {
		n, err := parseNews([]byte(message))
		if err != nil {
			return // of another version
		}
		select {
		case heard <- n:
		default:
		}
	})
}

// Refresh makes Follow report the stored questions again. It does not wait.
func (r *Redis) Refresh() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// loadPage is the number of questions read at once.
const loadPage = 128

// load reports the stored questions, in order of expiry. It stops if Redis does not answer: the
// next connection starts it again.
func (r *Redis) load(ctx context.Context, most int, learn func(Key, Question, time.Duration)) {
	var total int64
	if r.link.Do(ctx, r.o.Write, func(ctx context.Context, c rueidis.Client) (err error) {
		total, err = c.Do(ctx, c.B().Zcard().Key(r.name("end")).Build()).AsInt64()
		return err
	}) != nil {
		return
	}
	for from := max(total-int64(most), 0); from < total; from += loadPage {
		if r.link.Do(ctx, r.o.Write, func(ctx context.Context, c rueidis.Client) error {
			return r.page(ctx, c, from, learn)
		}) != nil {
			return
		}
	}
}

// page reports one page of questions.
func (r *Redis) page(ctx context.Context, c rueidis.Client, from int64, learn func(Key, Question, time.Duration)) error {
	ends, err := c.Do(ctx, c.B().Zrange().Key(r.name("end")).Min(strconv.FormatInt(from, 10)).Max(strconv.FormatInt(from+loadPage-1, 10)).Withscores().Build()).AsZScores()
	if err != nil || len(ends) == 0 {
		return err
	}
	keys := make([]string, len(ends))
	for i := range ends {
		keys[i] = r.name("q:") + ends[i].Member
	}
	questions, err := c.Do(ctx, c.B().Mget().Key(keys...).Build()).ToArray()
	if err != nil || len(questions) != len(ends) {
		return err
	}
	for i := range ends {
		left := time.Until(time.UnixMilli(int64(ends[i].Score)))
		data, err := questions[i].AsBytes()
		if err != nil || left <= 0 {
			continue // it has expired, or is not for other wordings
		}
		key, known := parseKey(ends[i].Member)
		if q, err := parseQuestion(data, key); err == nil && known {
			learn(key, q, left)
		}
	}
	return nil
}

func (r *Redis) name(rest string) string { return r.o.Prefix + ":{answers}:" + rest }

func (r *Redis) channel() string { return r.o.Prefix + ":av" }
