package portforward

import "time"

// Hurry shortens lookAround and halfHere. Call it before a forward is opened.
func (s *Set) Hurry() { s.lookAround, s.halfHere = 100*time.Millisecond, 200*time.Millisecond }
