package iperf

import "time"

// cpuTime is the processor time that this process has used.
type cpuTime struct{ user, system time.Duration }

func (c cpuTime) minus(d cpuTime) cpuTime { return cpuTime{c.user - d.user, c.system - d.system} }

// percent returns the processor time as percentages of a duration: total, user and system.
func (c cpuTime) percent(of time.Duration) (total, user, system float64) {
	if of <= 0 {
		return 0, 0, 0
	}
	user = 100 * c.user.Seconds() / of.Seconds()
	system = 100 * c.system.Seconds() / of.Seconds()
	return user + system, user, system
}
