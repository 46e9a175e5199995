package app

import (
	_ "embed"
	"fmt"

	"signalbox/configs"
)

// Schema is the JSON Schema of the configuration, draft 7.
func Schema() ([]byte, error) {
	b, err := configs.FS.ReadFile("signalbox.schema.json")
	if err != nil {
		return nil, fmt.Errorf("embedded schema: %w", err)
	}
	return b, nil
}

// openapi is written by `make generate`.
//
//go:embed openapi.json
var openapi []byte

// OpenAPI returns the description of the HTTP API of both listeners: OpenAPI 3.1 in JSON. The
// caller must not change it.
func OpenAPI() []byte { return openapi }
