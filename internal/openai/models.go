package openai

// ModelObject is one entry of GET /v1/models and the response of GET /v1/models/{id}.
type ModelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`  // "model"
	Created int64  `json:"created"` // Unix time in seconds
	OwnedBy string `json:"owned_by"`
	// MaxModelLen is the context window in tokens, prompt and answer together, as reported by vLLM;
	// 0 if not known.
	MaxModelLen int `json:"max_model_len,omitzero"`
}

// NewModelObject returns the entry of a model; created is a Unix time in seconds.
func NewModelObject(id string, created int64, ownedBy string) ModelObject {
	return ModelObject{ID: id, Object: "model", Created: created, OwnedBy: ownedBy}
}

// ModelList is the response of GET /v1/models.
type ModelList struct {
	Object string        `json:"object"` // "list"
	Data   []ModelObject `json:"data"`
}

// NewModelList returns a list of models. Without models the list is empty, not null.
func NewModelList(models ...ModelObject) ModelList {
	if models == nil {
		models = []ModelObject{}
	}
	return ModelList{Object: "list", Data: models}
}
