package supervise

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 10 * 365 * 24 * time.Hour

// identity is one certificate to create: its file name and its subject.
type identity struct {
	file, commonName string
	groups           []string
}

const admins = "system:masters"

// The API server's audit policy and the kubeconfigs use these names.
var (
	adminUser      = identity{"admin", "plumb-admin", []string{admins}}
	controllerUser = identity{"controller-manager", "system:kube-controller-manager", []string{admins}}
	schedulerUser  = identity{"scheduler", "system:kube-scheduler", []string{admins}}
	kwokUser       = identity{"kwok", "system:kwok", []string{admins}}
	clients        = []identity{adminUser, controllerUser, schedulerUser, kwokUser}
	serverIdentity = identity{"apiserver", "kube-apiserver", nil}
	frontProxy     = identity{"front-proxy", "front-proxy", nil}
)

func (c *cluster) pki(name string) string { return filepath.Join(c.dir, "pki", name) }

// makeKeys writes all keys and certificates, unless an earlier start in this directory did.
func (c *cluster) makeKeys() error {
	finished := c.pki("complete")
	if _, err := os.Stat(finished); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "pki"), 0o700); err != nil {
		return err
	}
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	if err := writePEM(c.pki("ca.crt"), "CERTIFICATE", authority.certificate.Raw); err != nil {
		return err
	}
	for _, id := range append([]identity{serverIdentity, frontProxy}, clients...) {
		if err := c.issue(authority, id); err != nil {
			return fmt.Errorf("make the certificate of %s: %w", id.file, err)
		}
	}
	if err := c.makeServiceAccountKey(); err != nil {
		return err
	}
	return writeFile(finished, nil)
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (authority, error) {
	key, err := newKey()
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "plumb cluster CA"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(validity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return authority{certificate, key}, err
}

func (c *cluster) issue(by authority, id identity) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.commonName, Organization: id.groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return err
	}
	if err := writePEM(c.pki(id.file+".crt"), "CERTIFICATE", raw); err != nil {
		return err
	}
	return writeKey(c.pki(id.file+".key"), key)
}

func (c *cluster) makeServiceAccountKey() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(c.pki("service-account.pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(c.pki("service-account.key"), key)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func writeKey(path string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", raw)
}

func writePEM(path, kind string, raw []byte) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}
