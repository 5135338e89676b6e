package repl

import (
	"os"
	"sync"
)

// keys reads single keys from the terminal for a command. It disables echo.
type keys struct {
	mu      sync.Mutex
	tty     *os.File       // terminal for keys; nil if the input is not a terminal
	do      func(key byte) // function that receives keys; nil if no command reads keys
	release func()         // restores the terminal; nil if the terminal is not in key mode
}

// each calls do with every key, except keys that send signals, until the caller calls stop.
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
