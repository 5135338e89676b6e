package portforward

import "time"

// Hurry shortens stallCheck and halfCloseTimeout. Call it before a forward is opened.
func (s *Set) Hurry() { s.stallCheck, s.halfCloseTimeout = 100*time.Millisecond, 200*time.Millisecond }

// Copy lets goroutines relay, as on systems other than Linux. Call it before a forward is opened.
func (s *Set) Copy() { s.copies = true }
