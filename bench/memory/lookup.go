package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"signalbox/proxy/affinity"
)

// lookup finds where a text of 600 KiB is cached: when it is sent whole, and when a pointer names
// it, whose chain is known.
func (l *live) lookup(_ context.Context, r *report) error {
	texts, err := corpora()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(texts, func(c corpus) bool { return len(c.text) == contractBytes })
	if i < 0 {
		return errors.New("no text is long enough")
	}
	text := texts[i].text
	p, now, err := l.filled(text)
	if err != nil {
		return err
	}
	var chain affinity.Chain
	chain.Message("system", string(text))
	hold(p, now, &chain, 0)
	find := func(c *affinity.Chain) error {
		if t, ok := p.Find(now, lookedUp(c)); !ok || t.Predicted < c.Bytes()/4-2*affinity.BlockBytes {
			return fmt.Errorf("%d tokens were found of %d bytes", t.Predicted, c.Bytes())
		}
		return nil
	}
	var sent affinity.Chain
	whole := func() error {
		sent.Reset()
		sent.Message("system", "")
		sent.WriteBytes(text)
		return find(&sent)
	}
	fromWhole, err := l.each(200, whole)
	if err != nil {
		return err
	}
	fromPointer, err := l.each(100_000, func() error { return find(&chain) })
	if err != nil {
		return err
	}
	for k := range fromPointer {
		fromPointer[k] *= 1000
	}
	r.demand(fmt.Sprintf("index lookup for a body of %d KiB among %d others on 4 servers: hashed and found; processor time, ms", len(text)>>10, heldTexts), fromWhole, "%.3f", atMost, 1)
	r.demand("index lookup for a pointer to it, µs", fromPointer, "%.2f", noBar, 0)
	return nil
}

// heldTexts is how many texts of 600 KiB four servers hold.
const heldTexts = 100

// filled is a placer of four servers that hold so many texts.
func (l *live) filled(text []byte) (*affinity.Placer, time.Time, error) {
	var servers []affinity.Endpoint
	for n := range 4 {
		servers = append(servers, affinity.Endpoint{Name: fmt.Sprint("server-", n), Weight: 1, Tokens: 4_000_000})
	}
	now := time.Now()
	p, err := affinity.New(servers, affinity.DefaultOptions(), now)
	if err != nil {
		return nil, now, err
	}
	for n := range heldTexts {
		var c affinity.Chain
		c.Message("system", string(shuffled(text, source(l.seeds[0], uint64(n)))))
		hold(p, now, &c, n%len(servers))
	}
	return p, now, nil
}

// hold lets a server answer a prompt.
func hold(p *affinity.Placer, now time.Time, c *affinity.Chain, server int) {
	ticket := p.Sent(now, lookedUp(c), server)
	ticket.First(now)
	ticket.End(now, affinity.Usage{Prompt: c.Bytes() / 4, Cached: -1})
}

// lookedUp is a request with a prompt.
func lookedUp(c *affinity.Chain) *affinity.Request {
	traits, hints := affinity.Traits{Model: "m"}, affinity.Hints{}
	class := traits.Class()
	key, _ := hints.Key(class, c.Blocks(), c.Bytes()/4)
	return &affinity.Request{Class: class, Key: key, Blocks: c.Blocks(), Bytes: c.Bytes()}
}
