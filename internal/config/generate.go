package config

//go:generate env GOWORK=off go run -C ../../tools ./configref ..
