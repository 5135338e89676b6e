package internet

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planted runs a test in a separate process. The test fails only if the environment says so.
func planted(t *testing.T, test, kind string, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^" + test + "$"}, args...)...)
	cmd.Env = append(os.Environ(), "INTERNET_PLANTED="+kind)
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	return string(out)
}

// A search tests each seed, also if another seed crashes its process. It says which seeds failed
// and how to repeat them.
func TestSeeds(t *testing.T) {
	out := planted(t, "TestSomeSeeds", "seeds", "-internet.seeds=40", "-internet.batch=10")
	assert.Regexp(t, `internet: 40 seeds in \S+, \d+ an hour; 3 failed: \[7 8 23\]`, out)
	assert.Regexp(t, `internet: seed 7 failed \(exit status 1\):(.|\n)+seven(.|\n)+to repeat this: `+
		`GOMAXPROCS=1 go test -run '\^TestSomeSeeds\$' -count=1 -internet.seed=7\n`, out)
	assert.Regexp(t, `internet: seed 8 failed \(exit status 2\):(.|\n)+panic: in a goroutine(.|\n)+`+
		`to repeat this: GOMAXPROCS=1 go test -run '\^TestSomeSeeds\$' -count=1 -internet.seed=8\n`, out)
	assert.Regexp(t, `internet: seed 23 failed \(exit status 1\):(.|\n)+seven`, out)

	// Seeds that go test's time limit cuts off do not count as failed.
	out = planted(t, "TestSomeSeeds", "seeds", "-internet.seeds=1000000", "-test.timeout=11s")
	assert.Contains(t, out, "3 failed: [7 8 23]")
	assert.Regexp(t, `internet: \d+ of 1000000 seeds are not tested: go test ends soon: use a longer `+
		`-timeout`, out)
}

func TestSomeSeeds(t *testing.T) {
	if os.Getenv("INTERNET_PLANTED") != "seeds" {
		t.Skip("it fails: for TestSeeds")
	}
	Test(t, "link a b", func(t *testing.T, w *World) {
		switch w.Seed() {
		case 7, 23:
			t.Error("seven")
		case 8:
			done := make(chan struct{})
			go func() { panic("in a goroutine") }()
			<-done
		}
	})
}

// The pattern of a test with subtests matches no other test.
func TestPattern(t *testing.T) {
	assert.Equal(t, `^TestA$/^b\.c$`, pattern("TestA/b.c/seed=17"))
}

// A program that would never end fails, and the failure says what the program waits for.
func TestNothingHangs(t *testing.T) {
	for kind, want := range map[string][]string{
		"main": {
			"the program of host b still runs 1m0s after its calls have returned net.ErrClosed",
			"internet.forever",
		},
		"at":    {"FAIL: TestHanging", "use of closed network connection"},
		"chan":  {"the program has not used the network for 24h0m0s", "internet.forever"},
		"tries": {"TestHanging (-internet.seed=1) still runs after", "-timeout of go test, 3s, is over"},
	} {
		t.Run(kind, func(t *testing.T) {
			began := time.Now()
			out := planted(t, "TestHanging", kind, "-test.timeout=3s")
			for _, w := range want {
				assert.Contains(t, out, w)
			}
			assert.Less(t, time.Since(began), time.Minute)
		})
	}
}

func forever() { <-make(chan struct{}) }

func TestHanging(t *testing.T) {
	kind := os.Getenv("INTERNET_PLANTED")
	if !strings.Contains("main at chan tries", kind) || kind == "" {
		t.Skip("it hangs: for TestNothingHangs")
	}
	Test(t, "link a b\nlink b c", func(t *testing.T, w *World) {
		switch kind {
		case "main":
			w.Host("b").Go(func(*Host) { forever() })
		case "at": // the program waits when the test ends
			pc, err := w.Host("a").ListenPacket("udp", ":9")
			require.NoError(t, err)
			w.At(0, func() {
				_, _, err := pc.ReadFrom(make([]byte, 1))
				_ = pc.Close()
				t.Error(err)
			})
			time.Sleep(time.Second)
		case "chan":
			forever()
		case "tries": // a link stays cut, and the program never gives up
			w.Link("a", "b").Cut()
			var c net.Conn
			for err := net.ErrClosed; err != nil; c, err = w.Host("a").Dial("tcp", "c:7") {
				time.Sleep(time.Second)
			}
			_ = c.Close()
		}
	})
}
