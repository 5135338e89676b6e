package internet_test

import (
	"bufio"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/tidepool-net/tidepool/internet"
)

func TestEcho(t *testing.T) {
	internet.Test(t, `
		link server router delay 20ms
		link router client delay 5ms loss 1%
	`, func(t *testing.T, w *internet.World) {
		w.Host("server").Go(serveEcho)
		w.At(10*time.Second, w.Host("server").Crash)
		w.At(20*time.Second, func() { w.Host("server").Restart(nil) })

		answers, began := 0, time.Now()
		for ; time.Since(began) < time.Minute; time.Sleep(100 * time.Millisecond) {
			if askEcho(w.Host("client")) == nil {
				answers++
			}
		}
		if answers < 150 {
			t.Errorf("%d answers", answers)
		}
	})
}

func serveEcho(h *internet.Host) {
	ln, err := h.Listen("tcp", ":7")
	if err != nil {
		return // the host has crashed
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn) // the client notices missing data
		}()
	}
}

func askEcho(h *internet.Host) error {
	conn, err := h.Dial("tcp", "server:7")
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return err
	}
	_, err = bufio.NewReader(conn).ReadString('\n')
	return err
}
