package ctl

import "os"

// childCode returns a command's exit code.
func childCode(s *os.ProcessState) int { return s.ExitCode() }
