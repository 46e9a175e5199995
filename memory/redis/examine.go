package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Condition is the state of a Redis server, for operators.
type Condition struct {
	// Silent is why the server does not report its state, such as a user without permission for
	// INFO. Version, policy, memory and role are then unknown.
	Silent  error
	Version string
	// Policy is its maxmemory-policy. Data that must not be lost requires noeviction.
	Policy string
	// MaxMemory and Used are in bytes; MaxMemory is 0 without a limit.
	MaxMemory, Used int64
	// Replica means that the server is a replica and accepts no writes.
	Replica bool
	// Persists is whether it writes its data to disk.
	Persists Persistence
	// Clock is the offset of its clock from this machine's, with an error of up to Took.
	Clock time.Duration
	// Took is the round trip time.
	Took time.Duration
}

// Persistence is whether a Redis server keeps its data across a restart.
type Persistence int

// The values of Persistence.
const (
	PersistsUntold Persistence = iota // CONFIG is forbidden
	PersistsYes
	PersistsNo // neither appendonly nor save
)

// Old reports whether the version is too old for the scripts of a Store.
func (c *Condition) Old() bool {
	major, _, _ := strings.Cut(c.Version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n < 7
}

// Examine connects to a Redis server, queries its state and disconnects. Errors never contain the
// URL, which may hold a password.
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

// snapshots reports whether a server without appendonly saves snapshots.
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
