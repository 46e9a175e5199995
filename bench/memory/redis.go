package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// redisServer is a redis-server of this run's own, on a free port of loopback.
type redisServer struct {
	url string
	dir string
	cmd *exec.Cmd
}

// startRedis starts one and returns when it is ready. The caller stops it.
func startRedis(ctx context.Context) (*redisServer, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	s := &redisServer{url: "redis://127.0.0.1:" + port + "/0", dir: dir}
	s.cmd = exec.CommandContext(ctx, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no") //nolint:gosec // a program of the machine
	log, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("redis-server: %w", err), os.RemoveAll(dir))
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			go func() { // what it says from here on
				for lines.Scan() {
				}
			}()
			return s, nil
		}
	}
	s.stop()
	return nil, errors.New("redis-server ended before it was ready")
}

// stop ends it and removes its data.
func (s *redisServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}
