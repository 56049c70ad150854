package simulate

import (
	"time"
	"unsafe"
)

// reading is what a process reads from its clock: the date, which may be set at any time, beside the monotonic time,
// which is never. Package time gives no way to make such a time but to read the machine's clock.
func reading(now time.Time, set time.Duration) time.Time {
	const (
		hasMonotonic = 1 << 63
		since1885    = 2682288000 // until 1970, in seconds
		nanoseconds  = 30
	)
	date := now.Add(set)
	read := time.Time{}
	raw := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&read))
	raw.wall = hasMonotonic | uint64(date.Unix()+since1885)<<nanoseconds | uint64(date.Nanosecond())
	raw.ext = int64(now.Sub(begin)) + 1
	raw.loc = time.UTC
	return read
}
