package proxy

import (
	"crypto/rand"
	"strconv"

	"signalbox/internal/openai"
)

// fieldTransfer is what vLLM takes about moving cached blocks, and sourceMember of it where they come from.
const (
	fieldTransfer = "kv_transfer_params"
	sourceMember  = "remote_kv_source"
)

// transferID names one transfer of blocks. The request's own id will not do: a client may have chosen it.
func transferID() string { return "kv_" + rand.Text() }

// extend gives the body what its endpoint takes beyond the API, and takes out what no client may say: a salt, and a
// host that the model server is to connect to.
func (rw rewriter) extend(p *openai.Patch) {
	switch {
	case rw.salt != "":
		p.SetField(fieldSalt, strconv.AppendQuote(nil, rw.salt))
	case rw.req.Field(fieldSalt) != nil:
		p.DeleteField(fieldSalt)
	}
	own := rw.req.Field(fieldTransfer)
	switch {
	case rw.member != "" && !disaggregated(own):
		p.SetNested(fieldTransfer, rw.member, []byte(rw.value))
	case openai.Member(own, sourceMember) != nil:
		p.DeleteNested(fieldTransfer, sourceMember)
	}
}

// disaggregated reports whether the parameters already say that another server computes the prompt, beside which a
// source of blocks is forbidden.
func disaggregated(params []byte) bool {
	for _, name := range [...]string{"remote_prefiller", "do_remote_prefill", "do_remote_decode"} {
		if v := openai.Member(params, name); v != nil && string(v) != "false" && string(v) != "null" {
			return true
		}
	}
	return false
}
