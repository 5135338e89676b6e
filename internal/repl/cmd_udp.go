package repl

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// mostDatagram is the maximum UDP payload in an IPv4 packet.
const mostDatagram = 65507

// udpCommand returns the command for datagrams. It takes the line as typed, because of TEXT.
func udpCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "udp listen PORT | send ADDR PORT TEXT",
		Short: "send and receive datagrams",
		Long: "`udp listen PORT` opens a UDP socket and prints the datagrams that it\n" +
			"receives. `s SID TEXT` answers the last sender.\n\n" +
			"`udp send ADDR PORT TEXT` sends TEXT, the rest of the line unchanged, as one\n" +
			"datagram; `FILL BYTE N` instead of TEXT sends BYTE N times. The socket stays\n" +
			"open for replies and for `s SID TEXT`, until `close SID`.",
		DisableFlagParsing: true,
		ValidArgsFunction:  at(words("listen", "send")),
		RunE: func(c *cobra.Command, args []string) error {
			verb, line := cut(rest(c, args))
			line = strings.TrimLeft(line, " \t")
			switch {
			case line == "--help" || line == "-h":
				return c.Help()
			case verb == "listen" || verb == "l":
				return udpListen(e, c, line)
			case verb == "send" || verb == "s":
				return udpSend(e, c, line)
			case verb == "":
				return wrong(c, "listen or send is missing")
			}
			return wrong(c, "%q is neither listen nor send", verb)
		},
	}
}

func udpListen(e *env, c *cobra.Command, line string) error {
	args := strings.Fields(line)
	switch {
	case len(args) == 0:
		return wrong(c, "PORT is missing")
	case len(args) > 1:
		return wrong(c, "unexpected argument: %q", strings.Join(args[1:], " "))
	}
	port, err := parsePort(c, args[0])
	if err != nil {
		return err
	}
	return show(e, c, control.ListenUDP{Port: port}, func(sock control.Socket) string {
		return fmt.Sprintf("Created UDP socket with ID %d", sock.SID)
	})
}

func udpSend(e *env, c *cobra.Command, line string) error {
	word, line := cut(line)
	if word == "" {
		return wrong(c, "ADDR is missing")
	}
	addr, err := e.host(c, word)
	if err != nil {
		return err
	}
	word, text := cut(strings.TrimLeft(line, " \t"))
	if word == "" {
		return wrong(c, "PORT is missing")
	}
	port, err := parsePort(c, word)
	if err != nil {
		return err
	}
	data, err := datagram(c, text)
	if err != nil {
		return err
	}
	req := control.SendUDP{Addr: addr, Port: port, Data: data}
	return show(e, c, req, func(sent control.DatagramSent) string {
		return fmt.Sprintf("Sent %d bytes from socket %d", sent.Bytes, sent.SID)
	})
}

func datagram(c *cobra.Command, text string) ([]byte, error) {
	if f := strings.Fields(text); len(f) == 3 && f[0] == "FILL" {
		b, err := fillByte(c, f[1])
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(f[2])
		if err != nil || n < 1 || n > mostDatagram {
			return nil, wrong(c, "%q is not a number of bytes from 1 to %d", f[2], mostDatagram)
		}
		return bytes.Repeat([]byte{b}, n), nil
	}
	switch {
	case text == "":
		return nil, wrong(c, "TEXT is missing")
	case len(text) > mostDatagram:
		return nil, wrong(c, "TEXT of %d bytes: must be at most %d", len(text), mostDatagram)
	}
	return []byte(text), nil
}
