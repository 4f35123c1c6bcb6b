//go:build !linux

package supervise

import "syscall"

// dieWithParent: only Linux has a parent-death signal. Elsewhere a supervisor killed with
// -9 leaves its children, which `cluster list` names and `cluster down` removes.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}
