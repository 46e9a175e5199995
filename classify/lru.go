package classify

import (
	"container/list"
	"sync"
)

// sized is a value with a size in bytes that does not change.
type sized interface{ bytes() int }

// lru is a bounded cache that evicts the least recently used values. The zero value is ready to
// use. It is safe for concurrent use.
type lru[K comparable, V sized] struct {
	mu     sync.Mutex // guards the fields below
	recent list.List  // of *entry[K, V], most recently used first
	byKey  map[K]*list.Element
	bytes  int
}

type entry[K comparable, V sized] struct {
	key   K
	value V
}

func (l *lru[K, V]) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey) == 0
}

// get returns the value of a key, if there is one.
func (l *lru[K, V]) get(key K) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.byKey[key]
	if !ok {
		return v, false
	}
	l.recent.MoveToFront(at)
	return at.Value.(*entry[K, V]).value, true //nolint:errcheck // nothing else is in the list
}

// put stores a value under key, replacing an older one. It then evicts the least recently used
// values until no more than most values and room bytes are left.
func (l *lru[K, V]) put(key K, v V, most, room int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = make(map[K]*list.Element)
	}
	if at, ok := l.byKey[key]; ok {
		l.remove(at)
	}
	l.byKey[key] = l.recent.PushFront(&entry[K, V]{key, v})
	l.bytes += v.bytes()
	for l.recent.Len() > 0 && (l.recent.Len() > most || l.bytes > room) {
		l.remove(l.recent.Back())
	}
}

func (l *lru[K, V]) drop(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.byKey[key]; ok {
		l.remove(at)
	}
}

func (l *lru[K, V]) remove(at *list.Element) {
	e := l.recent.Remove(at).(*entry[K, V]) //nolint:errcheck // nothing else is in the list
	delete(l.byKey, e.key)
	l.bytes -= e.value.bytes()
}
