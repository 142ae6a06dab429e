// SPDX-License-Identifier: Apache-2.0

package points

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// memory keeps points, as a folder does.
type memory map[int]Outcome[string]

func (m memory) Have(n int) (Outcome[string], bool) { o, is := m[n]; return o, is }

func (m memory) Put(n int, o Outcome[string]) error {
	if _, is := m[n]; is {
		return fmt.Errorf("point %d: a second time", n)
	}
	m[n] = o
	return nil
}

// letters is a sweep whose n-th point gives n letters. Point 3 is wrong; point 5 ends with an error, if there is one.
func letters(failed error, done *int) *Sweep[string] {
	return &Sweep[string]{Keys: strings.Split("abcdefgh", ""),
		Point: func(_ context.Context, n int, give func(string)) (wrong string, broken []string, err error) {
			*done++
			for k := range n {
				give(fmt.Sprintf("%c%d", 'a'+n, k))
			}
			switch n {
			case 3:
				return "three is wrong", []string{"odd"}, nil
			case 5:
				return "", nil, failed
			}
			return "", nil, nil
		}}
}

// tell goes through a sweep, and is all that it said.
func tell(t *testing.T, s *Sweep[string], w Way[string]) (said string, lost []*LostError, err error) {
	t.Helper()
	w.Workers = 1
	w.Take = func(n int, item string, kept bool) error {
		said += fmt.Sprintf("%d:%s,%v ", n, item, kept)
		return nil
	}
	w.Wrong = func(n int, wrong string, broken []string) { said += fmt.Sprintf("%d:%s,%v ", n, wrong, broken) }
	lost, err = s.Run(t.Context(), w)
	return said, lost, err
}

// TestAnotherProcess: points that another process does are what they are here, an error and its answer among them.
func TestAnotherProcess(t *testing.T) {
	for _, failed := range []error{nil, errors.New("broken"), fmt.Errorf("unsafe: %w", ErrNo)} {
		done := 0
		want, _, err1 := tell(t, letters(failed, &done), Way[string]{})
		there := letters(failed, &done)
		got, lost, err2 := tell(t, letters(failed, &done), Way[string]{Await: there.Do})
		if got != want || lost != nil || fmt.Sprint(err1) != fmt.Sprint(err2) || errors.Is(err1, ErrNo) != errors.Is(err2, ErrNo) {
			t.Errorf("%v: %s, %v, not %s, %v", failed, got, err2, want, err1)
		}
		if !strings.Contains(want, "3:d2,false 3:three is wrong,[odd] 4:e0") {
			t.Errorf("%s", want)
		}
	}
	s := letters(nil, new(int))
	s.Point = func(context.Context, int, func(string)) (string, []string, error) { return "", nil, context.Canceled }
	if made, err := s.Do(t.Context(), 0); made != nil || !Stopped(err) {
		t.Errorf("a point that was cut short is %s, %v", made, err)
	}
}

// TestKeeper: what is kept is not done again, and is the same; what is done is kept, but for a point that failed.
func TestKeeper(t *testing.T) {
	m, done := memory{}, 0
	if _, _, err := tell(t, letters(errors.New("broken"), &done), Way[string]{Keeper: m}); err == nil || len(m) != 5 || done != 6 {
		t.Errorf("%v, %d points are kept, %d were done", err, len(m), done)
	}
	fresh, _, _ := tell(t, letters(nil, new(int)), Way[string]{})
	done = 0
	got, _, err := tell(t, letters(nil, &done), Way[string]{Keeper: m})
	if err != nil || done != 3 || strings.ReplaceAll(got, "true", "false") != fresh || strings.Count(got, "true") != 0+1+2+3+4 {
		t.Errorf("%v, %d were done: %s, not %s", err, done, got, fresh)
	}
}

// TestLost: points that no worker came to an end with are told, in order, and the others are done.
func TestLost(t *testing.T) {
	there := letters(nil, new(int))
	got, lost, err := tell(t, there, Way[string]{Await: func(ctx context.Context, n int) ([]byte, error) {
		if n%2 == 1 {
			return nil, &LostError{there.Keys[n], "deadly"}
		}
		return there.Do(ctx, n)
	}})
	var keys []string
	for _, l := range lost {
		keys = append(keys, l.Error())
	}
	want := []string{"b: deadly", "d: deadly", "f: deadly", "h: deadly"}
	if err != nil || !slices.Equal(keys, want) || strings.Count(got, " ") != 2+4+6 {
		t.Errorf("%v: %v were lost: %s", err, keys, got)
	}
}
