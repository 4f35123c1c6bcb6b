// Package supervise runs a cluster in one directory: keys, kubeconfig, and the control
// plane's programs as child processes. It leaves none of them running.
//
// The caller holds the other end of standard input. When it closes before the cluster is
// ready, or at any time if the cluster is attached, the caller is gone and everything
// stops. One line of JSON on standard output reports how the start ended.
package supervise

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// A start takes seconds. This limit is for busy machines.
const startLimit = 5 * time.Minute

type options struct {
	name      string
	dir       string
	port      int
	portsDir  string
	kwok      string
	attached  bool
	removeDir bool
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("supervise", flag.ContinueOnError)
	flags.StringVar(&o.name, "name", "", "name of the cluster")
	flags.StringVar(&o.dir, "dir", "", "directory for data, keys and logs; absolute")
	flags.IntVar(&o.port, "port", 0, "port of the API server on 127.0.0.1; a free one unless given")
	flags.StringVar(&o.portsDir, "ports-dir", "", "directory of the locks that keep clusters off each other's ports")
	flags.StringVar(&o.kwok, "kwok", "", "path of the kwok program")
	flags.BoolVar(&o.attached, "attached", false, "stop when standard input closes")
	flags.BoolVar(&o.removeDir, "remove-dir", false, "remove the directory after stopping")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for flagName, value := range map[string]string{"name": o.name, "dir": o.dir, "ports-dir": o.portsDir, "kwok": o.kwok} {
		if value == "" {
			return o, fmt.Errorf("flag --%s is missing", flagName)
		}
	}
	if !filepath.IsAbs(o.dir) {
		return o, fmt.Errorf("--dir %s is not absolute", o.dir)
	}
	return o, nil
}

// The kernel sends a child its parent-death signal when the *thread* that started it ends.
// The main goroutine keeps the main thread for the whole life of the program, and it alone
// starts children.
func init() { runtime.LockOSThread() }

// Main runs the supervisor and returns the exit code.
func Main(args []string) int {
	o, err := parse(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "supervise:", err)
		return 2
	}
	// Its own session: a Ctrl-C in the caller's terminal reaches the caller only. The
	// supervisor stops when standard input closes.
	_, _ = syscall.Setsid()
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	c := &cluster{options: o, state: newState(o)}
	err = c.run(ctx)
	if err != nil {
		log.Printf("failed: %v", err)
		c.state.Phase, c.state.Reason = phaseFailed, err.Error()
	} else {
		c.state.Phase = phaseStopped
	}
	c.end()
	if err != nil {
		return 1
	}
	return 0
}

type cluster struct {
	options
	state    state
	children []*child
	locks    []io.Closer
	reported bool
}

func (c *cluster) run(ctx context.Context) error {
	if err := c.lockDirectory(); err != nil {
		return err
	}
	defer c.stopChildren()

	callerGone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(callerGone)
	}()

	if err := c.startUnlessGone(ctx, callerGone); err != nil {
		return err
	}
	c.state.Phase = phaseReady
	if err := c.state.write(c.dir); err != nil {
		return err
	}
	log.Printf("ready on port %d", c.state.Port)
	if err := c.report(); err != nil {
		return fmt.Errorf("the caller is gone: %w", err)
	}
	lifeline := callerGone
	if !c.attached {
		lifeline = nil
	}

	select {
	case <-ctx.Done():
		log.Print("stopping: asked by a signal")
		return nil
	case <-lifeline:
		log.Print("stopping: the caller is gone")
		return nil
	case dead := <-anyExit(c.children):
		return dead.describeExit()
	}
}

// startUnlessGone starts everything, and gives up when the caller ends, a signal arrives,
// or a child dies.
func (c *cluster) startUnlessGone(ctx context.Context, callerGone <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %s", startLimit))
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() {
		select {
		case <-callerGone:
			giveUp(fmt.Errorf("the caller is gone"))
		case <-ctx.Done():
		}
	}()
	err := c.start(ctx, giveUp)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// lockDirectory makes this the directory's only supervisor. The kernel releases the lock
// when the process ends for any reason.
func (c *cluster) lockDirectory() error {
	if err := os.MkdirAll(filepath.Join(c.dir, "logs"), 0o700); err != nil {
		return err
	}
	lock, err := tryLock(filepath.Join(c.dir, "lock"))
	if err != nil {
		return fmt.Errorf("another supervisor works in %s: %w", c.dir, err)
	}
	c.locks = append(c.locks, lock)
	return c.state.write(c.dir)
}

// report prints, once, how the start ended.
func (c *cluster) report() error {
	if c.reported {
		return nil
	}
	c.reported = true
	line, err := json.Marshal(c.state)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(line, '\n'))
	_ = os.Stdout.Close()
	return err
}

// end writes the final state file, or removes the directory.
func (c *cluster) end() {
	_ = c.report()
	if c.removeDir && c.state.Phase == phaseStopped {
		if err := os.RemoveAll(c.dir); err != nil {
			log.Printf("cannot remove %s: %v", c.dir, err)
		}
	} else if err := c.state.write(c.dir); err != nil {
		log.Printf("cannot write the state: %v", err)
	}
	for _, lock := range c.locks {
		_ = lock.Close()
	}
}
