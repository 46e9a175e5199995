package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"signalbox/bench/lab"
)

// redisServer is a redis-server of this run's own.
type redisServer struct {
	url string
	dir string
	cmd *exec.Cmd
}

// startRedis starts one and returns when it is ready. The caller stops it.
func startRedis(ctx context.Context) (*redisServer, error) {
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	cmd, at, err := lab.Redis(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &redisServer{url: "redis://" + at + "/0", dir: dir, cmd: cmd}, nil
}

// stop ends it and removes its data.
func (s *redisServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}
