package proxy

import (
	"crypto/rand"
	"strconv"

	"signalbox/internal/openai"
)

// fieldTransfer is what vLLM takes about moving cached blocks.
const fieldTransfer = "kv_transfer_params"

// transferID names one transfer of blocks. The request's own id will not do: a client may have
// chosen it.
func transferID() string { return "kv_" + rand.Text() }

// extend gives the body what its endpoint takes beyond the API, and takes out the salt that a
// client may have sent. What a caller may say of the transfer of blocks was settled before, and
// stays as it is.
func (rw rewriter) extend(p *openai.Patch) {
	switch {
	case rw.salt != "":
		p.SetField(fieldSalt, strconv.AppendQuote(nil, rw.salt))
	case rw.req.Field(fieldSalt) != nil:
		p.DeleteField(fieldSalt)
	}
	own := rw.req.Field(fieldTransfer)
	if rw.member != "" && (own == nil || neutral(fieldTransfer, own)) {
		p.SetNested(fieldTransfer, rw.member, []byte(rw.value))
	}
}
