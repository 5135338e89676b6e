package repl

import (
	"os"
	"sync"
)

// keys are those of the terminal while a command wants them as they are pressed: nobody else reads
// it then, and it shows none.
type keys struct {
	mu      sync.Mutex
	tty     *os.File       // nil: nobody types
	do      func(key byte) // nil: no command wants them
	release func()         // nil: they are not taken
}

// each has do called with every key, but those that are signals, until stop is called.
func (k *keys) each(do func(key byte)) (stop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.do = do
	k.take()
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.giveBack()
		k.do = nil
	}
}

// aside gives the terminal back while do runs.
func (k *keys) aside(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.giveBack()
	do()
	k.take()
}

func (k *keys) take() {
	if k.tty != nil && k.do != nil {
		k.release = takeKeys(k.tty, k.do)
	}
}

func (k *keys) giveBack() {
	if k.release != nil {
		k.release()
		k.release = nil
	}
}
