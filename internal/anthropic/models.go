package anthropic

import (
	"time"

	"signalbox/internal/openai"
)

// Model is one entry of a list of models, and the response to a request for one.
type Model struct {
	Type        string `json:"type"` // "model"
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"` // RFC 3339
}

// NewModel returns an entry in the format of this API. The display name of a model is its id.
func NewModel(m *openai.ModelObject) Model {
	return Model{
		Type: m.Object, ID: m.ID, DisplayName: m.ID,
		CreatedAt: time.Unix(m.Created, 0).UTC().Format(time.RFC3339),
	}
}

// ModelList is a list of models, in one page.
type ModelList struct {
	Data    []Model `json:"data"`
	HasMore bool    `json:"has_more"` // false
	FirstID *string `json:"first_id"` // null without models
	LastID  *string `json:"last_id"`
}

// NewModelList returns a list of all models in one page.
func NewModelList(models []openai.ModelObject) ModelList {
	l := ModelList{Data: make([]Model, len(models))}
	for i := range models {
		l.Data[i] = NewModel(&models[i])
	}
	if n := len(l.Data); n > 0 {
		l.FirstID, l.LastID = &l.Data[0].ID, &l.Data[n-1].ID
	}
	return l
}
