package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"signalbox/memory/ledger"
)

// Watch connects if necessary, and reports changes until ctx is done. Because notifications may be
// lost without a connection, missed is called after every connect. Both functions are called from
// one goroutine and must be fast. Watch returns nil when ctx is done, and an error after Close; by
// then its goroutine, which checks whether Redis responds and reconnects while the breaker is open,
// has ended.
func (s *Store) Watch(ctx context.Context, changed func(ledger.News), missed func()) error {
	var mending sync.WaitGroup
	defer mending.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	mending.Go(func() { s.mend(ctx) })
	retry := time.NewTicker(s.o.Rest)
	defer retry.Stop()
	for {
		err := s.listen(ctx, changed, missed)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, rueidis.ErrClosing) && s.client.Load() != nil {
			return fmt.Errorf("watch redis: %w", err)
		}
		s.o.Log.LogAttrs(ctx, slog.LevelDebug, "redis channel lost, trying again")
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
		}
	}
}

// mend reconnects while the breaker is open, because the time limit of a read is too short for a
// new connection to a Redis some milliseconds away. While the breaker is closed, it regularly
// checks whether Redis responds, which nothing else would notice without traffic.
func (s *Store) mend(ctx context.Context) {
	s.brake.mended.Store(true)
	defer s.brake.mended.Store(false)
	s.rounds(ctx, func() {
		client := s.client.Load()
		if client == nil || !s.brake.isOpen() && !s.health.away.Load() || s.greet(ctx, *client) != nil {
			return
		}
		s.brake.succeeded()
		s.greeted(ctx)
	}, func() {
		if client := s.client.Load(); client != nil && !s.brake.isOpen() && !s.health.away.Load() {
			s.look(ctx, *client)
		}
	})
}

// rounds calls mend once per rest period of the breaker, and look after every pause, until ctx
// ends.
func (s *Store) rounds(ctx context.Context, mend, look func()) {
	rest, pause := time.NewTicker(s.o.Rest), time.NewTimer(s.pause())
	defer rest.Stop()
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
			mend()
		case <-pause.C:
			look()
			pause.Reset(s.pause())
		}
	}
}

// pause returns the time to the next check, randomised so that replicas started together do not
// check together.
func (s *Store) pause() time.Duration {
	return s.o.Look + rand.N(s.o.Look/2+1) //nolint:gosec // spreads load, no secret
}

// look opens the breaker if Redis answers none of as many consecutive greetings as it takes failed
// calls. An answered greeting closes nothing: calls have less time.
func (s *Store) look(ctx context.Context, client rueidis.Client) {
	for i := s.o.Failures; ; i-- {
		err := s.hello(ctx, client)
		switch {
		case err == nil, ctx.Err() != nil:
			return
		case i <= 1:
			s.brake.open()
			s.lost(ctx, err)
			return
		}
	}
}

// The client has two connections for calls with a key and picks one at random: this many greetings
// use both, except once in 65,000.
const (
	multiplex = 1 // the logarithm to base 2
	greetings = 17
)

// greet makes the client connect, with time for it. It stops at the first error.
func (s *Store) greet(ctx context.Context, client rueidis.Client) error {
	for range greetings {
		if err := s.hello(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// hello sends Redis a small command, with time to connect.
func (s *Store) hello(ctx context.Context, client rueidis.Client) error {
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := client.Do(within, client.B().Exists().Key(s.o.Prefix+":hello").Build()).Error()
	if err != nil {
		return fmt.Errorf("greet redis: %w", err)
	}
	return nil
}

// listen does the work of Watch for one connection.
func (s *Store) listen(ctx context.Context, changed func(ledger.News), missed func()) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	connected := func() {
		s.known.forget() // it may be another Redis
		missed()
	}
	return s.receive(ctx, s.channel(), connected, func(message string) {
		if n, ok := parseNews(message); ok {
			changed(n)
		}
	})
}

// receive passes on messages of a channel, until the connection is lost or ctx is done. connected
// is called once there is a connection.
func (s *Store) receive(ctx context.Context, channel string, connected func(), heard func(message string)) error {
	client := *s.client.Load()
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(p rueidis.PubSubSubscription) {
		if p.Kind == "subscribe" {
			connected()
		}
	})
	err := client.Receive(hooked, client.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { heard(m.Message) })
	return wrap(err, "receive")
}

// Listen passes on messages of a channel until ctx is done, and then returns nil. Because messages
// may be lost without a connection, connected is called after every connect. Both functions are
// called from one goroutine and must be fast. It requires a running Watch, which connects.
func (s *Store) Listen(ctx context.Context, channel string, connected func(), heard func(message string)) error {
	retry := time.NewTicker(s.o.Rest)
	defer retry.Stop()
	for {
		if s.client.Load() != nil {
			if err := s.receive(ctx, channel, connected, heard); errors.Is(err, rueidis.ErrClosing) && ctx.Err() == nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
		}
	}
}

// parseNews parses "TENANT ID REV".
func parseNews(message string) (ledger.News, bool) {
	tenant, rest, ok := strings.Cut(message, " ")
	id, digits, more := strings.Cut(rest, " ")
	rev, err := strconv.ParseInt(digits, 10, 64)
	if !ok || !more || tenant == "" || id == "" || err != nil || rev < 0 {
		return ledger.News{}, false
	}
	return ledger.News{Name: ledger.Name{Tenant: ledger.Tenant(tenant), ID: id}, Rev: rev}, true
}
