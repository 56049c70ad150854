package simulate

import (
	"errors"
	"time"
)

// As in internal/peer: how long an answer is waited for, and how long an agent may take to follow before it says that
// it has not.
const (
	askFor       = 1500 * time.Millisecond
	answerWithin = time.Second
)

var errNoAnswer = errors.New("no answer")

// ask has a question go to another node's agent, and the answer come back. One of them is told, once.
func (m *machine) ask(node string, seen map[string]string, answered func(map[string]string, error)) {
	process, told := m.process, false
	tell := func(newest map[string]string, err error) {
		if process.alive && !told {
			told = true
			answered(newest, err)
			process.wake()
		}
	}
	m.s.after(askFor, func() { tell(nil, errNoAnswer) })
	other := m.s.machines[node]
	m.s.after(m.s.within(20*time.Millisecond, m.name+" asks "+node), func() {
		if !m.receives(other) || other.agent == nil || m.s.now.Before(other.deaf) {
			return
		}
		until, there := m.s.now.Add(answerWithin), other.process
		other.agent.Followed(seen, func(newest map[string]string) {
			if m.s.now.Before(until) && m.receives(other) {
				m.s.after(m.s.within(20*time.Millisecond, node+" answers "+m.name), func() { tell(newest, nil) })
			}
		})
		there.wake()
	})
}
