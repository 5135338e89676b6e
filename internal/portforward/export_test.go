package portforward

import "time"

// Hurry shortens what doors wait for. It is called before the first of them opens.
func (s *Set) Hurry() { s.lookAround, s.halfHere = 100*time.Millisecond, 200*time.Millisecond }
