package supervise

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// child is one program of the cluster.
type child struct {
	name    string
	command *exec.Cmd
	logPath string
	// exited is closed after err is set.
	exited chan struct{}
	err    error
}

// startChild must be called on the main goroutine: see init in supervise.go.
func startChild(dir, name, program string, args ...string) (*child, error) {
	logPath := filepath.Join(dir, "logs", name+".log")
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	command := exec.Command(program, args...)
	command.Dir = dir
	command.Stdout, command.Stderr = logFile, logFile
	command.SysProcAttr = dieWithParent()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{name: name, command: command, logPath: logPath, exited: make(chan struct{})}
	go func() {
		c.err = command.Wait()
		close(c.exited)
	}()
	return c, nil
}

// anyExit returns the first child that exits.
func anyExit(children []*child) <-chan *child {
	first := make(chan *child, len(children))
	for _, c := range children {
		go func() {
			<-c.exited
			first <- c
		}()
	}
	return first
}

// describeExit returns how the child ended and the end of its output.
func (c *child) describeExit() error {
	how := "ended"
	if c.err != nil {
		how = c.err.Error()
	}
	return fmt.Errorf("%s: %s; last lines of %s:\n%s", c.name, how, c.logPath, lastLines(c.logPath, 8))
}

// stop asks the child to end and kills it after the grace time.
func (c *child) stop(grace time.Duration) {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.exited:
	case <-time.After(grace):
		c.kill()
	}
}

func (c *child) kill() {
	_ = c.command.Process.Kill()
	<-c.exited
}

func lastLines(path string, count int) []byte {
	content, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	content = bytes.TrimRight(content, "\n")
	start := len(content)
	for ; count > 0 && start >= 0; count-- {
		start = bytes.LastIndexByte(content[:start], '\n')
	}
	return content[start+1:]
}
