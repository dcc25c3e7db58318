package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// ID writes a 64-bit id as etcd's tools print it, in 16 hexadecimal digits.
func ID(id uint64) string { return fmt.Sprintf("%016x", id) }

// Bytes writes a size for people, in powers of 1024.
func Bytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// SizeChange writes how a file's size changed, growth too.
func SizeChange(before, after int64) string {
	switch {
	case after > before:
		return fmt.Sprintf("%s to %s, grew by %s", Bytes(before), Bytes(after), Bytes(after-before))
	case after == before:
		return fmt.Sprintf("%s before and after", Bytes(before))
	}
	return fmt.Sprintf("%s to %s, %s returned", Bytes(before), Bytes(after), Bytes(before-after))
}

// Duration writes a duration for people, with three figures at most.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Time writes a time for people, in their own zone.
func Time(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// Count writes a number of things: "1 key", "2 keys", "3 repositories".
func Count(n int, noun string) string {
	if n != 1 {
		if stem, ok := strings.CutSuffix(noun, "y"); ok && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeou") {
			noun = stem + "ie"
		}
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
