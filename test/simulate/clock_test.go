package simulate

import (
	"testing"
	"time"
)

// TestReading: the date is as it was set, and what lies between two readings is not.
func TestReading(t *testing.T) {
	first, then := reading(begin, 0), reading(begin.Add(3*time.Second+5), -time.Hour)
	if d := then.Sub(first); d != 3*time.Second+5 {
		t.Errorf("%v lie between the readings", d)
	}
	if d := then.Round(0); !d.Equal(begin.Add(3*time.Second + 5 - time.Hour)) {
		t.Errorf("the date is %v", d)
	}
}
