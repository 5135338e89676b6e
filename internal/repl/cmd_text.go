package repl

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// The commands of this file take the rest of the line as typed, with its quotes and spaces.

func writeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "s SID TEXT",
		Short: "write to a connection (or FILL BYTE N)",
		Long: "Write TEXT, the rest of the line unchanged, to a connection, and wait until\n" +
			"the send buffer has accepted it. `s SID FILL BYTE N` writes BYTE N times; BYTE\n" +
			"is one character or a number like 0x2a.",
		DisableFlagParsing: true,
		ValidArgsFunction:  at(e.connections),
		RunE: func(c *cobra.Command, args []string) error {
			word, text := cut(rest(c, args))
			if word == "" {
				return wrong(c, "SID is missing")
			}
			return writeText(e, c, word, text)
		},
	}
}

// sendCommand returns a command with two functions. It sends a test packet to an address, or writes
// to a socket, as in the course, if the first word is a number. If the node's file has the old
// syntax, the protocol number comes before the text, as in the old nodes.
func sendCommand(e *env) *cobra.Command {
	use := "send ADDR TEXT"
	long := "Send a test packet (protocol 0) with TEXT, the rest of the line\n" +
		"unchanged. The destination prints it.\n"
	if e.node.OldGrammar {
		use = "send ADDR PROTO TEXT"
		long = "Send a packet of protocol PROTO (0 is the test protocol) with TEXT,\n" +
			"the rest of the line unchanged.\n"
	}
	return &cobra.Command{
		Use:                use,
		Short:              "send a test packet (or SID TEXT: write)",
		Long:               long + "`send SID TEXT` does the same as `s SID TEXT`.",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			word, text := cut(rest(c, args))
			if word == "" {
				return wrong(c, "ADDR is missing")
			}
			if _, err := strconv.ParseUint(word, 10, 31); err == nil {
				return writeText(e, c, word, text)
			}
			return sendTest(e, c, word, text)
		},
	}
}

func sendTest(e *env, c *cobra.Command, word, text string) error {
	addr, err := e.host(c, word)
	if err != nil {
		return err
	}
	req := control.SendTest{Addr: addr, Text: text}
	if e.node.OldGrammar {
		proto, text := cut(text)
		if proto == "" {
			return wrong(c, "PROTO is missing")
		}
		n, err := parseCount(c, proto, 0, math.MaxUint8)
		if err != nil {
			return err
		}
		req.Proto, req.Text = uint8(n), text
	}
	if req.Text == "" {
		return wrong(c, "TEXT is missing")
	}
	return show(e, c, req, func(sent control.TestSent) string {
		return fmt.Sprintf("Sent %d bytes", sent.Bytes)
	})
}

const pieceSize = 64 << 10

func writeText(e *env, c *cobra.Command, word, text string) error {
	sid, err := parseSID(c, word)
	if err != nil {
		return err
	}
	piece, n := []byte(text), int64(len(text))
	if f := strings.Fields(text); len(f) == 3 && f[0] == "FILL" {
		b, err := fillByte(c, f[1])
		if err != nil {
			return err
		}
		if n, err = strconv.ParseInt(f[2], 10, 64); err != nil || n < 1 {
			return wrong(c, "%q is not a number of bytes", f[2])
		}
		piece = bytes.Repeat([]byte{b}, int(min(n, pieceSize)))
	}
	if n == 0 {
		return wrong(c, "TEXT is missing")
	}
	if err := writeAll(c.Context(), e, sid, piece, n); err != nil {
		return failed(c, err)
	}
	return e.answer(c, control.Written{Bytes: int(n)}, fmt.Sprintf("Sent %d bytes", n))
}

// fillByte parses the byte for FILL: one character, or a number of at least two characters.
func fillByte(c *cobra.Command, word string) (byte, error) {
	if len(word) == 1 {
		return word[0], nil
	}
	n, err := strconv.ParseUint(word, 0, 8)
	if err != nil {
		return 0, wrong(c, "%q is neither one character nor a byte like 0x2a", word)
	}
	return byte(n), nil
}

// rest returns the argument of a command that takes the line as typed. It removes leading spaces
// and --json.
func rest(c *cobra.Command, args []string) string {
	text := strings.TrimLeft(strings.Join(args, " "), " \t")
	if word, more := cut(text); word == jsonWord && c.Flags().Set("json", "true") == nil {
		text = strings.TrimLeft(more, " \t")
	}
	return text
}

const jsonWord = "--json"
