// Command verdicts compares objects with the code of Argo CD's application controller, for the tests of
// `plumb fix --for argocd`.
//
// It reads lines from standard input, each one JSON object:
//
//	{"desired": {...}, "live": {...}, "ignoreDifferences": [...], "structured": true}
//
// "desired" is the object of Git with its tracking mark, "ignoreDifferences" the rules of the Application.
// "structured" asks for the comparison of apps that sync with ServerSideApply=true. It needs -openapi FILE, the
// answer of `kubectl get --raw /openapi/v2`. Without it, the comparison is the three-way one, the default.
//
// For each line it writes one: {"synced": true}, {"synced": false, "predicted": {...}, "normalized": {...}} with
// the two objects that differ, or {"error": "..."}.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/argo/diff"
	"github.com/argoproj/argo-cd/v3/util/argo/normalizers"
	openapi "github.com/google/gnostic-models/openapiv2"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util/proto"
)

type question struct {
	Desired           *unstructured.Unstructured           `json:"desired"`
	Live              *unstructured.Unstructured           `json:"live"`
	IgnoreDifferences []v1alpha1.ResourceIgnoreDifferences `json:"ignoreDifferences"`
	Structured        bool                                 `json:"structured"`
}

type answer struct {
	Synced     bool            `json:"synced"`
	Predicted  json.RawMessage `json:"predicted,omitempty"`
	Normalized json.RawMessage `json:"normalized,omitempty"`
	Error      string          `json:"error,omitempty"`
}

func main() {
	file := flag.String("openapi", "", "the OpenAPI document of the cluster, for structured comparisons")
	flag.Parse()
	logrus.SetOutput(io.Discard)
	if err := run(*file); err != nil {
		fmt.Fprintln(os.Stderr, "verdicts:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	parser, err := schemas(file)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		if err := encoder.Encode(compare(&asked, parser)); err != nil {
			return err
		}
		// The reader may wait for this line before it writes the next one.
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

func schemas(file string) (*managedfields.GvkParser, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	document, err := openapi.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		return nil, err
	}
	return managedfields.NewGVKParser(models, false)
}

// The controller's settings without any ConfigMap: the status of every object is ignored.
var overrides = map[string]v1alpha1.ResourceOverride{
	"*/*": {IgnoreDifferences: v1alpha1.OverrideIgnoreDiff{JSONPointers: []string{"/status"}}},
}

func compare(asked *question, parser *managedfields.GvkParser) answer {
	if asked.Structured && parser == nil {
		return answer{Error: "a structured comparison needs -openapi"}
	}
	config, err := diff.NewDiffConfigBuilder().
		WithDiffSettings(asked.IgnoreDifferences, overrides, false, normalizers.IgnoreNormalizerOpts{}).
		WithTracking(common.LabelKeyAppInstance, string(v1alpha1.TrackingMethodAnnotation)).
		WithNoCache().
		WithGVKParser(parser).
		WithStructuredMergeDiff(asked.Structured).
		WithManager(common.ArgoCDSSAManager).
		Build()
	if err != nil {
		return answer{Error: err.Error()}
	}
	desired := asked.Desired
	if desired != nil && asked.Live != nil && !kube.IsCRD(desired) && desired.GetNamespace() == "" {
		desired = desired.DeepCopy()
		desired.SetNamespace(asked.Live.GetNamespace())
	}
	result, err := diff.StateDiff(asked.Live, desired, config)
	if err != nil {
		return answer{Error: err.Error()}
	}
	if !result.Modified {
		return answer{Synced: true}
	}
	return answer{Predicted: result.PredictedLive, Normalized: result.NormalizedLive}
}
