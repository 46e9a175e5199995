package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Condition is what a Redis tells of itself to somebody who looks after it.
type Condition struct {
	// Silent is why it does not tell about itself, such as a user that may not ask (INFO). Then what
	// INFO tells is not known: the version, the policy, the memory, and whether it is a copy.
	Silent  error
	Version string
	// Policy is its maxmemory-policy. What must not be lost needs noeviction.
	Policy string
	// MaxMemory and Used are in bytes; MaxMemory is 0 without a bound.
	MaxMemory, Used int64
	// Replica: it is a copy, and takes no writes.
	Replica bool
	// Persists tells whether it writes what it has to disk.
	Persists Persistence
	// Clock is by how much its clock is ahead of this machine's, give or take Took.
	Clock time.Duration
	// Took is how long a question takes.
	Took time.Duration
}

// Persistence is whether a Redis finds its data again after a restart.
type Persistence int

// What a Redis tells of that.
const (
	PersistsUntold Persistence = iota // CONFIG is forbidden
	PersistsYes
	PersistsNo // neither appendonly nor save
)

// Old reports a version whose scripts are not those that a Store needs.
func (c *Condition) Old() bool {
	major, _, _ := strings.Cut(c.Version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n < 7
}

// Examine connects to a Redis, asks it about itself and leaves. No error holds the URL, which may
// hold a password.
func Examine(ctx context.Context, o Options) (*Condition, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	client, err := rueidis.NewClient(s.address)
	if err != nil {
		return nil, fmt.Errorf("connect to redis: %w", err)
	}
	defer client.Close()
	out := &Condition{}
	text, err := client.Do(ctx, client.B().Info().Build()).ToString()
	if refused, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(refused.Error(), "NOPERM") {
		out.Silent = err
	} else if err != nil {
		return nil, fmt.Errorf("ask redis about itself: %w", err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			out.Version = value
		case "maxmemory_policy":
			out.Policy = value
		case "maxmemory":
			out.MaxMemory, _ = strconv.ParseInt(value, 10, 64)
		case "used_memory":
			out.Used, _ = strconv.ParseInt(value, 10, 64)
		case "role":
			out.Replica = value != "master"
		case "aof_enabled":
			if value == "1" {
				out.Persists = PersistsYes
			}
		}
	}
	if out.Persists == PersistsUntold {
		out.Persists = snapshots(ctx, client)
	}
	start := time.Now()
	now, err := client.Do(ctx, client.B().Time().Build()).AsIntSlice()
	if err != nil || len(now) != 2 {
		return nil, fmt.Errorf("ask redis for the time: %w", err)
	}
	out.Took = time.Since(start)
	out.Clock = time.Unix(now[0], now[1]*1000).Sub(start.Add(out.Took / 2))
	return out, nil
}

// snapshots asks whether a Redis without appendonly saves from time to time.
func snapshots(ctx context.Context, client rueidis.Client) Persistence {
	got, err := client.Do(ctx, client.B().ConfigGet().Parameter("save").Build()).AsStrMap()
	save, told := got["save"]
	switch {
	case err != nil || !told:
		return PersistsUntold
	case strings.Trim(save, `"`) == "":
		return PersistsNo
	}
	return PersistsYes
}
