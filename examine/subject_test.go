package examine_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/examine"
)

// actor is set in the environment of this test's program to make it a subject.
const actor = "EXAMINE_TEST_ACTOR"

func TestMain(m *testing.M) {
	if role := os.Getenv(actor); role != "" {
		act(role, os.Args[1])
	}
	os.Exit(m.Run())
}

// act plays a bad node of the course with one UDP socket.
func act(role, file string) {
	switch role {
	case "exit":
		os.Exit(0)
	case "crash":
		panic("the student's index is out of range")
	case "hang":
		select {}
	case "print":
		for {
			fmt.Println(strings.Repeat("debug ", 1000))
		}
	}
	f, err := os.Open(file)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(f)
	lines.Scan()
	var host string
	var port int
	_, _ = fmt.Sscan(lines.Text(), &host, &port)
	s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		panic(err)
	}
	go func() {
		for typed := bufio.NewScanner(os.Stdin); typed.Scan(); {
			fmt.Println("10.20.0.1") // output for which the examiner waits
		}
	}()
	answer(role, s)
}

// answer answers packets badly.
func answer(role string, s *net.UDPConn) {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 2000)
	for {
		n, from, err := s.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		switch role {
		case "garbage":
			for range 20 {
				for i := range b[:100] {
					b[i] = byte(random.Uint32())
				}
				b[0] = 0x45
				_, _ = s.WriteToUDPAddrPort(b[:random.IntN(100)], from)
			}
		case "echo":
			_, _ = s.WriteToUDPAddrPort(b[:n], from)
		case "flood":
			for {
				if _, err := s.WriteToUDPAddrPort(b[:n], from); err != nil {
					return
				}
			}
		case "die":
			panic("a packet came")
		}
	}
}

// Each kind of bad subject gets the right verdict, and the examination ends.
func TestBadSubjects(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	checks, err := examine.Checks()
	require.NoError(t, err)
	var list []*examine.Check
	for _, c := range checks {
		if c.Name == "tcp/handshake-passive" {
			list = append(list, c)
		}
	}
	for _, c := range []struct {
		role string
		want examine.Verdict
		text string
	}{
		{"exit", examine.Exited, "exit status 0"},
		{"crash", examine.Crashed, "the student's index is out of range"},
		{"hang", examine.Hung, "the node has not bound its UDP ports within 500ms"},
		{"print", examine.Flooded, "it printed more than"},
		{"garbage", examine.Fail, "did not send `S. ack 1 len 0`"},
		{"echo", examine.Fail, "did not send `S. ack 1 len 0`"},
		{"flood", examine.Flooded, "the stack sent 5000 packets without being asked"},
		{"die", examine.Crashed, "a packet came"},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			p := examine.Profiles()["course-2022"]
			p.StartTime = 500 * time.Millisecond
			if c.role == "print" {
				p.StartTime = 10 * time.Second
			}
			p.Starts("env "+actor+"="+c.role+" "+self+" {lnx}", "", "")
			exam := &examine.Exam{
				Subject: &examine.Course{Profile: p, Folder: t.TempDir()}, Checks: list, Runs: 1,
			}
			r := exam.Run(t.Context()).Results[0]
			assert.Equal(t, c.want, r.Verdict, "%+v", r.Failure)
			require.NotNil(t, r.Failure)
			assert.Contains(t, r.Failure.Reason, c.text)
		})
	}
}
