package supervise

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken in blocks from below the range that Linux uses for outgoing connections,
// so that only another listener can take a port between choosing and using it.
const (
	firstPort  = 20000
	lastPort   = 32000
	blockSize  = 4
	blockCount = (lastPort - firstPort) / blockSize
)

type ports struct{ api, etcdClient, etcdPeer, node int }

// choosePorts finds free ports and holds the lock of their block until the supervisor ends.
func (c *cluster) choosePorts() (ports, error) {
	if c.port != 0 && !isFree(c.port) {
		return ports{}, fmt.Errorf("port %d on 127.0.0.1 is taken", c.port)
	}
	if err := os.MkdirAll(c.portsDir, 0o700); err != nil {
		return ports{}, err
	}
	for range blockCount {
		base := firstPort + rand.IntN(blockCount)*blockSize
		lock, err := tryLock(filepath.Join(c.portsDir, strconv.Itoa(base)))
		if err != nil {
			continue
		}
		if isFree(base) && isFree(base+1) && isFree(base+2) && isFree(base+3) {
			c.locks = append(c.locks, lock)
			chosen := ports{api: base, etcdClient: base + 1, etcdPeer: base + 2, node: base + 3}
			if c.port != 0 {
				chosen.api = c.port
			}
			return chosen, nil
		}
		_ = lock.Close()
	}
	return ports{}, fmt.Errorf("no free ports between %d and %d on 127.0.0.1", firstPort, lastPort)
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// tryLock takes an exclusive lock on the file, or fails at once if another process has it.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
