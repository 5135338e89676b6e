package repl

import (
	"os"
	"sync"
)

// keys reads single keys from the terminal for a command, without echo.
type keys struct {
	mu      sync.Mutex
	tty     *os.File       // nil: the input is not a terminal
	do      func(key byte) // nil: no command reads keys
	release func()         // nil: not in key mode
}

// each calls do with every key, except those that are signals, until stop is called.
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
