package conversation

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyNoLeaks(m) }

// direct is a Link without a breaker, which leaves calls all the time they want; with an error it
// is a Redis that is away.
type direct struct {
	client rueidis.Client
	err    error
}

func (d *direct) Do(ctx context.Context, _ time.Duration, call func(context.Context, rueidis.Client) error) error {
	if d.err != nil {
		return d.err
	}
	return call(ctx, d.client)
}

func key(n int) (k Key) {
	copy(k[:], strconv.Itoa(n))
	return k
}

func open(t *testing.T, link Link) *Store {
	t.Helper()
	s := New(link, "")
	t.Cleanup(s.Close)
	return s
}

func TestStatesCrossRedis(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a, link := open(t, &direct{client: client}), &direct{client: client}
	b := open(t, link)
	want := &State{
		Model: "big", Route: "math", Tokens: 12, Said: []string{"integrate x"},
		Topics: map[string]Topic{"domain": {Label: "math", Labels: []string{"math", "law"}, Probs: []float32{0.75, 0.25}}},
	}
	a.Keep(t.Context(), want, time.Hour, key(1), key(2))
	a.Close()
	for i, keys := range [][]Key{{key(1)}, {key(9), key(2)}} {
		got, at := b.Find(t.Context(), keys...)
		if d := cmp.Diff(want, got); d != "" || at != i {
			t.Errorf("%v: key %d (-want +got):\n%s", keys, at, d)
		}
	}
	later := &State{Model: "small"}
	b.Keep(t.Context(), later, time.Hour, key(1))
	b.Close()
	if got, _ := a.Find(t.Context(), key(1)); got == nil || got.Model != "small" {
		t.Errorf("what this process knew counts for more than what Redis does: %+v", got)
	}
	link.err = errors.New("away")
	if got, _ := b.Find(t.Context(), key(1)); got == nil || got.Model != "small" {
		t.Errorf("while Redis is away: %+v", got)
	}
	if got, _ := b.Find(t.Context(), key(2)); got != nil {
		t.Errorf("while Redis is away, what another process answered: %+v", got)
	}
	b.Keep(t.Context(), &State{Model: "last"}, time.Hour, key(4))
	b.Close()
	link.err = nil
	if got, at := b.Find(t.Context(), key(4), key(2)); got == nil || got.Model != "last" || at != 0 {
		t.Errorf("of a key that is not in Redis yet, before one that is: %+v", got)
	}
	// an entry that nobody here wrote is none
	err = client.Do(t.Context(), client.B().Set().Key("cx:s:"+key(3).String()).Value("{").Build()).Error()
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := a.Find(t.Context(), key(3)); got != nil {
		t.Errorf("damaged: %+v", got)
	}
}

func TestStatesEndInRedisToo(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a := open(t, &direct{client: client})
	a.Keep(t.Context(), &State{Model: "m"}, time.Minute, key(1))
	a.Close()
	left, err := client.Do(t.Context(), client.B().Pttl().Key("cx:s:"+key(1).String()).Build()).AsInt64()
	if err != nil || left <= 0 || left > time.Minute.Milliseconds() {
		t.Errorf("it ends in %d ms (%v)", left, err)
	}
}

func TestStatesAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	for n := range 2 * maxStates {
		s.Keep(t.Context(), &State{Model: "m"}, time.Hour, key(n))
	}
	if n := s.Len(); n > maxStates {
		t.Errorf("%d states are kept, more than %d", n, maxStates)
	}
	if got, _ := s.Find(t.Context()); got != nil {
		t.Error("there is a state without a key")
	}
}
