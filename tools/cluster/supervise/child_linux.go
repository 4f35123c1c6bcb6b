package supervise

import "syscall"

// dieWithParent has the kernel kill the child the moment the supervisor dies, even by kill -9.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
