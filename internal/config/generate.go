package config

//go:generate go run -C ../../tools ./configref ..
