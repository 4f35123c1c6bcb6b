// The Sealed Secrets controller outside a pod.
//
// The program of the module takes its credentials from the service account of its pod and from nowhere else.
// This one takes a kubeconfig, and starts the same parts of the same module in the same order. Most of them are
// not exported, so they are named to the linker.
package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"
	_ "unsafe"

	"github.com/bitnami-labs/sealed-secrets/pkg/client/clientset/versioned"
	"github.com/bitnami-labs/sealed-secrets/pkg/controller"
	flag "github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Nobody makes a key with fewer bits than the module's default, but the test has no time for 4096.
const keySize = 2048

//go:linkname initKeyRegistry github.com/bitnami-labs/sealed-secrets/pkg/controller.initKeyRegistry
func initKeyRegistry(ctx context.Context, client kubernetes.Interface, random io.Reader, namespace, prefix, label string, keySize int, order string) (*controller.KeyRegistry, error)

//go:linkname initKeyRenewal github.com/bitnami-labs/sealed-secrets/pkg/controller.initKeyRenewal
func initKeyRenewal(ctx context.Context, registry *controller.KeyRegistry, period, validFor time.Duration, cutoff time.Time, commonName, annotations, labels string) (func(), error)

//go:linkname initKeyGenSignalListener github.com/bitnami-labs/sealed-secrets/pkg/controller.initKeyGenSignalListener
func initKeyGenSignalListener(trigger func())

//go:linkname prepareController github.com/bitnami-labs/sealed-secrets/pkg/controller.prepareController
func prepareController(client kubernetes.Interface, namespace, keyNamespace string, tweak func(*metav1.ListOptions), flags *controller.Flags, sealed versioned.Interface, registry *controller.KeyRegistry) (*controller.Controller, error)

//go:linkname httpserver github.com/bitnami-labs/sealed-secrets/pkg/controller.httpserver
func httpserver(certificates func() ([]*x509.Certificate, error), check func([]byte) (bool, error), rotate func([]byte) ([]byte, error), burst, rate int) *http.Server

//go:linkname getCert github.com/bitnami-labs/sealed-secrets/pkg/controller.(*KeyRegistry).getCert
func getCert(registry *controller.KeyRegistry) (*x509.Certificate, error)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "credentials of the controller")
	namespace := flag.String("namespace", "", "the namespace that it serves, and where its keys are")
	validFor := flag.Duration("key-ttl", 24*time.Hour, "how long a certificate is valid")
	// The module's own flag --listen-addr is in the same set.
	flag.Parse()
	if err := run(*kubeconfig, *namespace, *validFor); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace string, validFor time.Duration) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	sealed, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	const order = "CertNotBefore"
	registry, err := initKeyRegistry(context.Background(), client, rand.Reader, namespace, "sealed-secrets-key", controller.SealedSecretsKeyLabel, keySize, order)
	if err != nil {
		return err
	}
	// A period of 0: only SIGUSR1 makes a new key.
	newKey, err := initKeyRenewal(context.Background(), registry, 0, validFor, time.Time{}, "", "", "")
	if err != nil {
		return err
	}
	initKeyGenSignalListener(newKey)

	flags := &controller.Flags{UpdateStatus: true, MaxRetries: 5, KeyOrderPriority: order}
	running, err := prepareController(client, namespace, namespace, nil, flags, sealed, registry)
	if err != nil {
		return err
	}
	updateStatus(running)
	stop := make(chan struct{})
	defer close(stop)
	go running.Run(stop)
	certificates := func() ([]*x509.Certificate, error) {
		certificate, err := getCert(registry)
		return []*x509.Certificate{certificate}, err
	}
	// The limits of requests are those of a production controller times 50: a test asks more often than a user.
	server := httpserver(certificates, running.AttemptUnseal, running.Rotate, 100, 100)
	defer server.Close()

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	// The test holds the other end: when it is gone, so is the controller.
	go func() {
		io.Copy(io.Discard, os.Stdin)
		ended <- syscall.SIGTERM
	}()
	<-ended
	return nil
}

// The module's own main sets the field that says whether statuses are written; nobody else can.
func updateStatus(running *controller.Controller) {
	field := reflect.ValueOf(running).Elem().FieldByName("updateStatus")
	*(*bool)(field.Addr().UnsafePointer()) = true
}
