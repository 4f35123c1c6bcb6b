package supervise

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func (c *cluster) kubeconfig(id identity) string { return filepath.Join(c.dir, id.file+".kubeconfig") }

// writeKubeconfigs writes one file per client, with the certificates inside, so that the
// file can be copied.
func (c *cluster) writeKubeconfigs(port int) error {
	authority, err := os.ReadFile(c.pki("ca.crt"))
	if err != nil {
		return err
	}
	for _, id := range clients {
		certificate, err := os.ReadFile(c.pki(id.file + ".crt"))
		if err != nil {
			return err
		}
		key, err := os.ReadFile(c.pki(id.file + ".key"))
		if err != nil {
			return err
		}
		context := "plumb-" + c.name
		config := api.NewConfig()
		config.Clusters[context] = &api.Cluster{
			Server:                   fmt.Sprintf("https://127.0.0.1:%d", port),
			CertificateAuthorityData: authority,
		}
		config.AuthInfos[context] = &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
		config.Contexts[context] = &api.Context{Cluster: context, AuthInfo: context}
		config.CurrentContext = context
		content, err := clientcmd.Write(*config)
		if err != nil {
			return err
		}
		if err := writeFile(c.kubeconfig(id), content); err != nil {
			return err
		}
	}
	return nil
}
