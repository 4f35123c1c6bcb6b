package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"plumb.dev/tools/cluster/stages"
)

// pollInterval is used while the API server has nothing to watch.
const pollInterval = 25 * time.Millisecond

// writeStages joins our stage files into the one that kwok reads.
func (c *cluster) writeStages() error {
	entries, err := stages.Files.ReadDir(".")
	if err != nil {
		return err
	}
	var joined bytes.Buffer
	for _, entry := range entries {
		content, err := stages.Files.ReadFile(entry.Name())
		if err != nil {
			return err
		}
		joined.Write(bytes.ReplaceAll(content, []byte("{{logs}}"), []byte(filepath.Join(c.dir, "logs"))))
		joined.WriteString("\n---\n")
	}
	return writeFile(filepath.Join(c.dir, "stages.yaml"), joined.Bytes())
}

// containerLogs is the log of containers named "talker", and the log before their last restart, in the
// format of a kubelet. Tests may add lines.
var containerLogs = map[string]string{
	"talker.log": "2026-01-01T10:00:00.000000000Z stdout F listening on :8080\n" +
		"2026-01-01T10:00:01.000000000Z stderr F warning: the cache is cold\n" +
		"2026-01-01T10:00:02.000000000Z stdout F ready\n",
	"talker-previous.log": "2026-01-01T09:00:00.000000000Z stderr F fatal: no database\n",
}

// writeContainerLogs writes them unless an earlier start in this directory did.
func (c *cluster) writeContainerLogs() error {
	for name, content := range containerLogs {
		path := filepath.Join(c.dir, "logs", name)
		if exists(path) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := writeFile(path, []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

// waitUntilServing returns when the API server serves requests.
func waitUntilServing(ctx context.Context, client *kubernetes.Clientset) error {
	return poll(ctx, "the API server to be ready", func() error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// makeObjects creates what a new cluster needs: nodes and a storage class.
func makeObjects(ctx context.Context, client *kubernetes.Clientset) error {
	for _, name := range nodeNames {
		node, err := readManifest[core.Node]("node.yaml")
		if err != nil {
			return err
		}
		node.Name = name
		node.Labels["kubernetes.io/hostname"] = name
		if _, err := client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{}); ignoreExisting(err) != nil {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	class, err := readManifest[storage.StorageClass]("storage-class.yaml")
	if err != nil {
		return err
	}
	if _, err := client.StorageV1().StorageClasses().Create(ctx, class, meta.CreateOptions{}); ignoreExisting(err) != nil {
		return fmt.Errorf("create storage class %s: %w", class.Name, err)
	}
	return nil
}

var nodeNames = []string{"node-0", "node-1"}

// waitUntilUsable returns when kwok keeps the nodes ready and the controllers have created the
// service account that pods need: from then on a workload can run.
func waitUntilUsable(ctx context.Context, client *kubernetes.Clientset) error {
	err := poll(ctx, "the default service account", func() error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", meta.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range nodeNames {
		err := poll(ctx, "node "+name+" to be ready", func() error {
			node, err := client.CoreV1().Nodes().Get(ctx, name, meta.GetOptions{})
			if err != nil {
				return err
			}
			return readiness(node)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func readiness(node *core.Node) error {
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("tainted with %s", node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == core.NodeReady && condition.Status == core.ConditionTrue {
			return nil
		}
	}
	return errors.New("not Ready")
}

// poll repeats the check until it passes. The last result is part of the error.
func poll(ctx context.Context, what string, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last seen: %v", what, context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}

func readManifest[T any](name string) (*T, error) {
	content, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return nil, err
	}
	object := new(T)
	if err := yaml.UnmarshalStrict(content, object); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return object, nil
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
