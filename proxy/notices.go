package proxy

import (
	"time"

	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
)

// UseBoard makes b the board. Call it once, before the first request.
func (p *Proxy) UseBoard(b backend.Board) { p.state.Load().notices.Use(b) }

// Learn takes in what another replica told of a model's endpoint.
func (p *Proxy) Learn(model string, r affinity.Residence) {
	st := p.acquire()
	defer st.release()
	if m, ok := st.ByName[model]; ok && m.Servers.Placer != nil {
		m.Servers.Placer.Learn(time.Now(), r)
	}
}
