package ref

import "time"

// Since is when the controller gave an egress address to a node, in microseconds since 1970; 0: nobody says. It tells
// one giving of an object from another, and is compared for nothing but equality by those who read it.
type Since int64

// SinceTime is a time as a Since, in whole microseconds.
func SinceTime(t time.Time) Since {
	if t.IsZero() {
		return 0
	}
	return Since(t.UnixMicro())
}

// Time is zero where nobody says when.
func (s Since) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(s)).UTC()
}

// sinceForm is RFC 3339 in UTC, with all six digits.
const sinceForm = "2006-01-02T15:04:05.000000Z"

// String is the time as the API has it, such as "2026-01-02T03:04:05.000006Z"; "" where nobody says when.
func (s Since) String() string {
	if s == 0 {
		return ""
	}
	return s.Time().Format(sinceForm)
}

// ParseSince reads what String says.
func ParseSince(text string) (Since, error) {
	if text == "" {
		return 0, nil
	}
	t, err := time.Parse(sinceForm, text)
	return SinceTime(t), err
}
