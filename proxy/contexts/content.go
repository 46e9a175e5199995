package contexts

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/memory"
)

// content serves GET /v1/contexts/{id}/content, which counts as a use of the context. The body is
// the stored content: a text as text/plain, byte for byte, or messages as a JSON list. For a client
// that prefers JSON, the content is wrapped in an object that names the context.
func (s *Service) content(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	snap, err := s.store.Resolve(ctx, r.Owner, ref)
	if err != nil {
		return err
	}
	defer snap.Release()
	h := w.Header()
	h["Etag"] = []string{strconv.Quote("sha256:" + snap.Sum.String())}
	h["X-Signalbox-Context-Tier"] = []string{snap.Tier.String()}
	h["X-Signalbox-Context-Version"] = []string{snap.ID + "@" + strconv.Itoa(snap.Version)}
	h["Vary"] = []string{"Accept"}
	if prefersJSON(r.Header["Accept"]) {
		return send(w, http.StatusOK, wrapped(snap)...)
	}
	if snap.Messages() != nil {
		return send(w, http.StatusOK, between("[", "]", ",", snap.Fragments)...)
	}
	pieces, err := plain(snap.Fragments)
	if err != nil {
		return err
	}
	h["X-Content-Type-Options"] = []string{"nosniff"} // user text must not be rendered as a page
	return sendAs(w, http.StatusOK, "text/plain; charset=utf-8", pieces...)
}

// wrapped returns the content in an object that names its context.
func wrapped(snap *memory.Snapshot) [][]byte {
	head := `{"object":"context.content","id":"` + snap.ID + `","version":` +
		strconv.Itoa(snap.Version) +
		`,"etag":"sha256:` + snap.Sum.String() + `",`
	if snap.Messages() != nil {
		return between(head+`"messages":[`, "]}", ",", snap.Fragments)
	}
	return between(head+`"content":"`, `"}`, "", snap.Fragments)
}

// between joins pieces with glue, and adds head and tail. It copies no piece.
func between(head, tail, glue string, pieces [][]byte) [][]byte {
	out := make([][]byte, 0, 2*len(pieces)+2)
	out = append(out, []byte(head))
	for i, p := range pieces {
		if i > 0 && glue != "" {
			out = append(out, []byte(glue))
		}
		out = append(out, p)
	}
	return append(out, []byte(tail))
}

// plain decodes the contents of JSON strings. Fragments without escapes are not copied.
func plain(fragments [][]byte) ([][]byte, error) {
	out := make([][]byte, len(fragments))
	for i, f := range fragments {
		out[i] = f
		if bytes.IndexByte(f, '\\') < 0 {
			continue
		}
		quoted := make([]byte, 0, len(f)+2)
		quoted = append(append(append(quoted, '"'), f...), '"')
		text, err := jsontext.AppendUnquote(make([]byte, 0, len(f)), quoted)
		if err != nil {
			return nil, fmt.Errorf("read stored text: %w", err)
		}
		out[i] = text
	}
	return out, nil
}

// prefersJSON reports whether a client names application/json and prefers nothing else on offer to
// it (RFC 9110, section 12.5.1).
func prefersJSON(accept []string) bool {
	asked, other := 0.0, 0.0
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			media, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			weight := 1.0
			if q, given := params["q"]; given {
				if weight, err = strconv.ParseFloat(q, 64); err != nil {
					continue
				}
			}
			switch media {
			case "application/json":
				asked = max(asked, weight)
			case "text/plain", "text/*":
				other = max(other, weight)
			}
		}
	}
	return asked > 0 && asked >= other
}
