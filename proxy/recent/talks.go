package recent

import (
	"slices"
	"time"

	"signalbox/memory/conversation"
)

// MaxFollowed is the maximum number of conversations kept.
const MaxFollowed = 128

// Followed is a conversation of more than one turn, as operators see it. It contains no text and no
// name from the client.
type Followed struct {
	Last   time.Time `json:"last"` // when its last turn was answered
	ID     string    `json:"id"`   // x-request-id of the last turn
	Tenant string    `json:"tenant"`
	Named  bool      `json:"named"` // named by the client; otherwise identified by its turns
	Model  string    `json:"model"` // model of the last turn
	Tokens int       `json:"tokens"`
	// turns after the first that stayed with the previous turn's model
	Kept  int `json:"kept"`
	Moved int `json:"moved"` // turns that moved to another model
	// the last move; absent if there was none
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// followed holds conversations by the keys under which their next turn will search, the most recent
// last in list.
type followed struct {
	at   map[conversation.Key]*followedTalk
	list []*followedTalk
}

type followedTalk struct {
	Followed

	keys []conversation.Key
}

// turn adds an answered turn other than the first of its conversation. The caller holds the lock of
// the Decisions.
func (f *followed) turn(r *Request) {
	t := r.Turn
	if t == nil || r.Model == nil {
		return
	}
	var x *followedTalk
	for _, k := range t.Found {
		if x = f.at[k]; x != nil {
			break
		}
	}
	if x == nil {
		x = new(followedTalk)
	}
	f.forget(x)
	x.Last, x.ID, x.Tenant, x.Named, x.Model, x.Tokens = r.At, r.ID, r.Tenant, t.Named, r.Model.Name, t.Tokens
	if t.Moved {
		x.Moved++
		x.From, x.To, x.Reason = t.From, r.Model.Name, t.Why
	} else {
		x.Kept++
	}
	if len(f.list) == MaxFollowed {
		f.forget(f.list[0])
	}
	x.keys = t.Keys
	for _, k := range x.keys {
		f.at[k] = x
	}
	f.list = append(f.list, x)
}

// forget removes a conversation if it is present.
func (f *followed) forget(x *followedTalk) {
	for _, k := range x.keys {
		if f.at[k] == x {
			delete(f.at, k)
		}
	}
	if i := slices.Index(f.list, x); i >= 0 {
		f.list = slices.Delete(f.list, i, i+1)
	}
}
