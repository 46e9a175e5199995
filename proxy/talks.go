package proxy

import (
	"slices"
	"time"

	"signalbox/memory/conversation"
)

// maxFollowed is of how many conversations Recent keeps what became of them.
const maxFollowed = 128

// Followed is a conversation of more than one turn, as operators see it. It holds no text and no
// name that a client gave.
type Followed struct {
	Last   time.Time `json:"last"` // when its last turn was answered
	ID     string    `json:"id"`   // x-request-id of that
	Tenant string    `json:"tenant"`
	Named  bool      `json:"named"` // by the client; else it was told by its turns
	Model  string    `json:"model"` // that answered the last turn
	Tokens int       `json:"tokens"`
	Kept   int       `json:"kept"`  // turns since the first, answered by the model of the turn before
	Moved  int       `json:"moved"` // given to another one
	// the last move; absent where there was none
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// followed are conversations by the keys under which their next turn looks, the one with the newest
// turn at the end of list.
type followed struct {
	at   map[conversation.Key]*followedTalk
	list []*followedTalk
}

type followedTalk struct {
	Followed

	keys []conversation.Key
}

// turn takes in a turn that was answered and was not the first of its conversation. The caller of a
// Recent holds its lock.
func (f *followed) turn(o *exchange, id string, now time.Time) {
	t, ok := o.Turn()
	if !ok || o.model == nil {
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
	x.Last, x.ID, x.Tenant, x.Named, x.Model, x.Tokens = now, id, o.who.Tenant, t.Named, o.model.Name, t.Tokens
	if t.Moved {
		x.Moved++
		x.From, x.To, x.Reason = t.From, o.model.Name, t.Why
	} else {
		x.Kept++
	}
	if len(f.list) == maxFollowed {
		f.forget(f.list[0])
	}
	x.keys = t.Keys
	for _, k := range x.keys {
		f.at[k] = x
	}
	f.list = append(f.list, x)
}

// forget takes a conversation out, where it is there.
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
