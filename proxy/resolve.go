package proxy

import (
	"cmp"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/memory"
)

// UseMemory makes m the store of contexts. Call it once, before the first request; without it requests that name
// contexts are refused.
func (p *Proxy) UseMemory(m *memory.Store) { p.memory = m }

// ownerOf is whose contexts a request of a caller may use in a session, empty for none.
func ownerOf(who Principal, session string) memory.Owner {
	return memory.Owner{Tenant: who.Tenant, Session: session, Subject: who.Name}
}

// sessionOf is the session that a request names, in its body or else in a header; empty without one.
func sessionOf(req *openai.Request, h http.Header) string {
	return cmp.Or(req.Extras.Session, h.Get("X-Signalbox-Session"))
}
