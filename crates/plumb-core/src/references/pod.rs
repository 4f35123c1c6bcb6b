//! What a pod needs to start.

use super::walk::{At, Found, Need, need_of};

impl<'object> Found<'object> {
    /// The spec of a pod or of a pod template.
    pub(super) fn pod(&mut self, spec: &At<'object>) {
        self.core("ServiceAccount", &spec.get("serviceAccountName"), Need::Blocks);
        self.core("ServiceAccount", &spec.get("serviceAccount"), Need::Blocks);
        self.cluster("scheduling.k8s.io", "PriorityClass", &spec.get("priorityClassName"), Need::Blocks);
        self.cluster("node.k8s.io", "RuntimeClass", &spec.get("runtimeClassName"), Need::Blocks);
        for secret in spec.get("imagePullSecrets").items() {
            self.core("Secret", &secret.get("name"), Need::Works);
        }
        for claim in spec.get("resourceClaims").items() {
            let group = "resource.k8s.io";
            self.local(group, "ResourceClaim", &claim.get("resourceClaimName"), Need::Blocks);
            self.local(group, "ResourceClaimTemplate", &claim.get("resourceClaimTemplateName"), Need::Blocks);
        }
        for volume in spec.get("volumes").items() {
            self.volume(&volume);
        }
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            for container in spec.get(list).items() {
                self.container(&container);
            }
        }
    }

    fn volume(&mut self, volume: &At<'object>) {
        let map = volume.get("configMap");
        self.core("ConfigMap", &map.get("name"), need_of(&map));
        let secret = volume.get("secret");
        self.core("Secret", &secret.get("secretName"), need_of(&secret));
        let claim = volume.below(&["persistentVolumeClaim", "claimName"]);
        self.core("PersistentVolumeClaim", &claim, Need::Blocks);
        for source in volume.below(&["projected", "sources"]).items() {
            let map = source.get("configMap");
            self.core("ConfigMap", &map.get("name"), need_of(&map));
            let secret = source.get("secret");
            self.core("Secret", &secret.get("name"), need_of(&secret));
            let bundle = source.get("clusterTrustBundle");
            let need = need_of(&bundle);
            self.cluster("certificates.k8s.io", "ClusterTrustBundle", &bundle.get("name"), need);
        }
        let template = volume.below(&["ephemeral", "volumeClaimTemplate", "spec"]);
        self.cluster("storage.k8s.io", "StorageClass", &template.get("storageClassName"), Need::Blocks);
        let csi = volume.get("csi");
        self.cluster("storage.k8s.io", "CSIDriver", &csi.get("driver"), Need::Blocks);
        self.core("Secret", &csi.below(&["nodePublishSecretRef", "name"]), Need::Blocks);
        self.core("Secret", &volume.below(&["azureFile", "secretName"]), Need::Blocks);
        for kind in ["cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"] {
            self.core("Secret", &volume.below(&[kind, "secretRef", "name"]), Need::Blocks);
        }
    }

    fn container(&mut self, container: &At<'object>) {
        for source in container.get("envFrom").items() {
            let map = source.get("configMapRef");
            self.core("ConfigMap", &map.get("name"), need_of(&map));
            let secret = source.get("secretRef");
            self.core("Secret", &secret.get("name"), need_of(&secret));
        }
        for variable in container.get("env").items() {
            let map = variable.below(&["valueFrom", "configMapKeyRef"]);
            self.core("ConfigMap", &map.get("name"), need_of(&map));
            let secret = variable.below(&["valueFrom", "secretKeyRef"]);
            self.core("Secret", &secret.get("name"), need_of(&secret));
        }
    }
}
