// The External Secrets operator outside a pod, for the story in which it makes a Secret.
//
// It starts the controllers of SecretStores and ExternalSecrets of the release, with a kubeconfig in place of the
// service account of a pod and for one namespace. The only provider in it is `fake`, whose values are in the store.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	esv1alpha1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1alpha1"
	genv1alpha1 "github.com/external-secrets/external-secrets/apis/generators/v1alpha1"
	"github.com/external-secrets/external-secrets/pkg/controllers/externalsecret"
	"github.com/external-secrets/external-secrets/pkg/controllers/externalsecret/esmetrics"
	ctrlmetrics "github.com/external-secrets/external-secrets/pkg/controllers/metrics"
	"github.com/external-secrets/external-secrets/pkg/controllers/secretstore"
	"github.com/external-secrets/external-secrets/pkg/controllers/secretstore/ssmetrics"
	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	// controller-runtime has a flag of this name, too.
	flags := flag.NewFlagSet("external-secrets", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "credentials of the operator")
	namespace := flags.String("namespace", "", "the namespace that it serves")
	flags.Parse(os.Args[1:])
	ctrl.SetLogger(logr.Discard())
	if err := run(*kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, esv1.AddToScheme, esv1alpha1.AddToScheme, genv1alpha1.AddToScheme} {
		if err := add(kinds); err != nil {
			return err
		}
	}
	ctrlmetrics.SetUpLabelNames(false)
	esmetrics.SetUpMetrics()
	ssmetrics.SetUpMetrics()
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  kinds,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		// As the operator's own main does by default.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&v1.Secret{}, &v1.ConfigMap{}}}},
	})
	if err != nil {
		return err
	}
	stores := &secretstore.StoreReconciler{
		Client: manager.GetClient(), Log: logr.Discard(), Scheme: kinds, RequeueInterval: 5 * time.Minute,
	}
	if err := stores.SetupWithManager(manager, controller.Options{}); err != nil {
		return err
	}
	secrets := &externalsecret.Reconciler{
		Client: manager.GetClient(), SecretClient: manager.GetClient(), Log: logr.Discard(), Scheme: kinds,
		RestConfig: config, RequeueInterval: time.Hour, EnableFloodGate: true,
	}
	if err := secrets.SetupWithManager(manager, controller.Options{}); err != nil {
		return err
	}
	// The test holds the other end: when it is gone, so is the operator.
	running, stop := context.WithCancel(ctrl.SetupSignalHandler())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return manager.Start(running)
}
