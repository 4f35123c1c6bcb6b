package supervise

import (
	"context"
	"embed"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

//go:embed manifests
var manifests embed.FS

// start starts the parts of the cluster, each as early as its dependencies allow.
// giveUp is called when a child dies during the start.
func (c *cluster) start(ctx context.Context, giveUp context.CancelCauseFunc) error {
	ports, err := c.choosePorts()
	if err != nil {
		return err
	}
	c.state.Port = ports.api
	if err := c.prepare(ports); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, part := range []program{c.etcd(self, ports), c.apiserver(self, ports)} {
		if err := c.add(ctx, part, giveUp); err != nil {
			return err
		}
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := waitUntilServing(ctx, client); err != nil {
		return err
	}
	log.Print("the API server serves")
	for _, part := range []program{c.controllerManager(self), c.scheduler(self), c.kwokController(ports)} {
		if err := c.add(ctx, part, giveUp); err != nil {
			return err
		}
	}
	if err := makeObjects(ctx, client); err != nil {
		return err
	}
	return waitUntilUsable(ctx, client)
}

// prepare writes every file that the programs read.
func (c *cluster) prepare(ports ports) error {
	if err := c.makeKeys(); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(ports.api); err != nil {
		return err
	}
	policy, err := manifests.ReadFile("manifests/audit-policy.yaml")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(c.dir, "audit-policy.yaml"), policy); err != nil {
		return err
	}
	if err := c.writeContainerLogs(); err != nil {
		return err
	}
	return c.writeStages()
}

// add starts one program and watches it until the start has ended.
func (c *cluster) add(ctx context.Context, p program, giveUp context.CancelCauseFunc) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	started, err := startChild(c.dir, p.name, p.path, p.args...)
	if err != nil {
		return err
	}
	c.children = append(c.children, started)
	c.state.Children = append(c.state.Children, childProcess{p.name, started.command.Process.Pid})
	go func() {
		select {
		case <-started.exited:
			giveUp(started.describeExit())
		case <-ctx.Done():
		}
	}()
	return c.state.write(c.dir)
}

// stopChildren ends them in the order in which they need each other: those that only talk
// to the API server first, then the API server, then its store. If the data is removed with the
// cluster, they need no graceful end.
func (c *cluster) stopChildren() {
	if c.removeDir {
		for _, started := range c.children {
			started.kill()
		}
		return
	}
	byName := map[string]*child{}
	for _, started := range c.children {
		byName[started.name] = started
	}
	for _, group := range [][]string{{"kwok", "kube-scheduler", "kube-controller-manager"}, {"kube-apiserver"}, {"etcd"}} {
		stopped := make(chan struct{})
		count := 0
		for _, name := range group {
			if started, ok := byName[name]; ok {
				count++
				go func() {
					started.stop(stopGrace)
					stopped <- struct{}{}
				}()
			}
		}
		for range count {
			<-stopped
		}
	}
}

const stopGrace = 1500 * time.Millisecond

func (c *cluster) client() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig(adminUser))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.kubeconfig(adminUser), err)
	}
	config = rest.AddUserAgent(config, "plumb-cluster")
	config.QPS = -1
	config.Timeout = 10 * time.Second
	return kubernetes.NewForConfig(config)
}
