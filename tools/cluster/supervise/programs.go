package supervise

import (
	"fmt"
	"path/filepath"
)

// program is one child to start.
type program struct {
	name, path string
	args       []string
}

func (c *cluster) etcd(self string, p ports) program {
	client := fmt.Sprintf("http://127.0.0.1:%d", p.etcdClient)
	peer := fmt.Sprintf("http://127.0.0.1:%d", p.etcdPeer)
	return program{"etcd", self, []string{
		"etcd",
		"--name=plumb",
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=plumb=" + peer,
		// A restart with the same data gets new ports; a single member need not be found.
		"--force-new-cluster=" + fmt.Sprint(exists(filepath.Join(c.dir, "etcd", "member"))),
		"--unsafe-no-fsync",
		// A single member need not wait for others in an election.
		"--heartbeat-interval=10",
		"--election-timeout=100",
		"--log-level=warn",
	}}
}

func (c *cluster) apiserver(self string, p ports) program {
	return program{"kube-apiserver", self, []string{
		"kube-apiserver",
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", p.etcdClient),
		fmt.Sprintf("--secure-port=%d", p.api),
		"--bind-address=127.0.0.1",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--cert-dir=" + filepath.Join(c.dir, "pki"),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki("service-account.pub"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--requestheader-client-ca-file=" + c.pki("ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + c.pki("front-proxy.crt"),
		"--proxy-client-key-file=" + c.pki("front-proxy.key"),
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		// A loopback address is not a valid endpoint, and no pod of this cluster really runs.
		"--endpoint-reconciler-type=none",
		// All nodes are one kwok on this machine. Their InternalIP would become that of their pods, and no
		// endpoint may have a loopback address.
		"--kubelet-preferred-address-types=InternalDNS",
		"--audit-policy-file=" + filepath.Join(c.dir, "audit-policy.yaml"),
		"--audit-log-path=" + c.state.AuditLog,
		// Written when each request ends, not in batches.
		"--audit-log-mode=blocking",
		// In MB. The default starts another file after 100, and tests would no longer see the requests before.
		"--audit-log-maxsize=102400",
	}}
}

func (c *cluster) controllerManager(self string) program {
	return program{"kube-controller-manager", self, []string{
		"kube-controller-manager",
		"--kubeconfig=" + c.kubeconfig(controllerUser),
		"--service-account-private-key-file=" + c.pki("service-account.key"),
		"--root-ca-file=" + c.pki("ca.crt"),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}}
}

func (c *cluster) scheduler(self string) program {
	return program{"kube-scheduler", self, []string{
		"kube-scheduler",
		"--kubeconfig=" + c.kubeconfig(schedulerUser),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}}
}

func (c *cluster) kwokController(p ports) program {
	return program{"kwok", c.kwok, []string{
		"--kubeconfig=" + c.kubeconfig(kwokUser),
		"--config=" + filepath.Join(c.dir, "stages.yaml"),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
		"--cidr=10.244.0.1/16",
		// kwok serves logs, like a kubelet.
		fmt.Sprintf("--node-port=%d", p.node),
		fmt.Sprintf("--server-address=127.0.0.1:%d", p.node),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
	}}
}
