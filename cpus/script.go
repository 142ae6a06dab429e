// SPDX-License-Identifier: Apache-2.0

package cpus

// Script is a Chooser that gives every answer in turn: it repeats a prefix of answers
// and goes on with zeros; Next moves to the next answers. The zero Script has no prefix.
type Script struct {
	given  []uint8
	of     []uint8 // how many answers there were to each question
	at     int
	prefix int  // how many answers Restart was given
	misfit bool // an answer was none to its question
}

// Repeat is a script that begins with answers that were recorded.
func Repeat(answers []uint8) *Script {
	s := &Script{}
	s.Restart(answers)
	return s
}

// Choose implements Chooser.
func (s *Script) Choose(what Choice, n int) int {
	switch what {
	case ChooseLinger: // to linger is not to be scheduled
		return 0
	case ChooseDrain: // it only matters whether the answer is 0
		n = min(n, 2)
	}
	return s.Ask(n)
}

// Ask is the answer to a question that has n of them; where there is one it is no question.
func (s *Script) Ask(n int) int {
	if n <= 1 {
		return 0
	}
	if s.at == len(s.given) {
		s.given, s.of = append(s.given, 0), append(s.of, 0)
	}
	s.of[s.at] = uint8(n)
	answer := int(s.given[s.at])
	s.at++
	if answer >= n {
		s.misfit = true
		return 0
	}
	return answer
}

// Next moves on to answers that were not given yet; false when there are none.
func (s *Script) Next() bool {
	s.given, s.of = s.given[:s.at], s.of[:s.at]
	s.at = 0
	for i := len(s.given) - 1; i >= 0; i-- {
		if s.given[i]++; s.given[i] < s.of[i] {
			s.given, s.of = s.given[:i+1], s.of[:i+1]
			return true
		}
	}
	s.given, s.of = s.given[:0], s.of[:0]
	return false
}

// Restart begins with a prefix, such as a recorded action's answers.
func (s *Script) Restart(answers []uint8) {
	s.given = append(s.given[:0], answers...)
	s.of = append(s.of[:0], answers...)
	s.at, s.prefix, s.misfit = 0, len(answers), false
}

// Answers are those that were given so far. They are valid until the next question.
func (s *Script) Answers() []uint8 { return s.given[:s.at] }

// Fits tells whether the answers of the prefix were those to the questions that were
// asked, and there were no others.
func (s *Script) Fits() bool { return s.at == s.prefix && !s.misfit }
