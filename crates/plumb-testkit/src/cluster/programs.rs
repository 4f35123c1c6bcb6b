//! The programs of a cluster, and which of them must be built.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Layout, compile, pinned, requirements};

/// Where each program is: built from the pinned modules, or the user's own.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The control plane and its supervisor.
    pub cluster: PathBuf,
    /// Plays the part of the kubelets.
    pub kwok: PathBuf,
    /// The user's own if on the `PATH`.
    pub kubectl: PathBuf,
    /// The user's own if on the `PATH`.
    pub helm: PathBuf,
    /// The user's own if on the `PATH`.
    pub kustomize: PathBuf,
    built_tools: Vec<PathBuf>,
}

/// One program to build from a pinned module.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    /// Directory with the go.mod that pins it.
    pub(super) directory: PathBuf,
    /// What to give `go build`.
    pub(super) package: &'static str,
    pub(super) linker_flags: String,
    /// Whether our own Go code goes into it, or only the pinned modules.
    pub(super) own_code: bool,
}

impl Programs {
    /// Builds what is missing and returns where everything is. Says what it is doing, every
    /// few seconds while it lasts, through `progress`. Callers at the same time wait for each
    /// other.
    pub fn ensure(layout: &Layout, progress: &mut dyn FnMut(&str)) -> Result<Self> {
        let sources = Layout::sources();
        let go = requirements::check(&sources)?;
        let mut build = |recipe: Recipe| compile::ensure(layout, &go, &recipe, progress);
        let cluster = build(control_plane(&sources)?)?;
        let kwok = build(kwok(&sources))?;
        let mut built_tools = Vec::new();
        let mut tool = |recipe: Result<Recipe>| {
            let recipe = recipe?;
            if let Some(path) = layout.on_path(recipe.name) {
                return Ok(path);
            }
            let path = build(recipe)?;
            built_tools.extend(path.parent().map(Path::to_path_buf));
            anyhow::Ok(path)
        };
        let kubectl = tool(kubectl(&sources))?;
        let helm = tool(helm(&sources))?;
        let kustomize = tool(kustomize(&sources))?;
        Ok(Self { cluster, kwok, kubectl, helm, kustomize, built_tools })
    }

    /// Directories to put on the `PATH` for the tools that the user does not have.
    pub fn path_additions(&self) -> &[PathBuf] {
        &self.built_tools
    }
}

/// The Sealed Secrets controller and its command line, for the tests that want them.
#[derive(Clone, Debug)]
pub struct SealedSecretsPrograms {
    /// The controller, with a kubeconfig in place of the service account of a pod.
    pub controller: PathBuf,
    /// What users of Sealed Secrets call.
    pub kubeseal: PathBuf,
    /// The file with the definition of the kind, in the same release.
    pub definition: PathBuf,
}

impl SealedSecretsPrograms {
    /// Builds what is missing and returns where everything is.
    pub fn ensure(layout: &Layout, progress: &mut dyn FnMut(&str)) -> Result<Self> {
        const MODULE: &str = "github.com/bitnami-labs/sealed-secrets";
        let directory = Layout::tool("sealed-secrets");
        let go = requirements::check(&directory)?;
        let recipe = |name, package, own_code| Recipe {
            name,
            directory: directory.clone(),
            package,
            linker_flags: String::new(),
            own_code,
        };
        let mut build = |recipe: Recipe| compile::ensure(layout, &go, &recipe, progress);
        let controller = build(recipe("sealed-secrets-controller", ".", true))?;
        let kubeseal =
            build(recipe("kubeseal", "github.com/bitnami-labs/sealed-secrets/cmd/kubeseal", false))?;
        let module = pinned::folder(&directory, MODULE)?;
        let definition = module.join("helm/sealed-secrets/crds/bitnami.com_sealedsecrets.yaml");
        Ok(Self { controller, kubeseal, definition })
    }
}

/// A program that plumb is tested against only where a run asks for it: it takes minutes to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientProgram {
    /// Argo CD's own command line, unmodified.
    Argocd,
    /// A certified `OpenID` provider.
    OidcProvider,
    /// The operator of External Secrets, with its provider for tests.
    ExternalSecrets,
}

impl ClientProgram {
    /// The variable with which tests find the program.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Argocd => "PLUMB_ARGOCD",
            Self::OidcProvider => "PLUMB_OIDC_PROVIDER",
            Self::ExternalSecrets => "PLUMB_EXTERNAL_SECRETS",
        }
    }

    /// Builds it if it is missing, and returns where it is.
    pub fn ensure(self, layout: &Layout, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        let (name, package, own_code) = match self {
            Self::Argocd => ("argocd", "github.com/argoproj/argo-cd/v3/cmd", false),
            Self::OidcProvider => ("oidc-provider", ".", true),
            Self::ExternalSecrets => ("external-secrets", ".", true),
        };
        let directory = match self {
            Self::Argocd | Self::OidcProvider => Layout::tool(name),
            Self::ExternalSecrets => Layout::tool(name).join("operator"),
        };
        let go = requirements::check(&directory)?;
        let recipe = Recipe { name, directory, package, linker_flags: String::new(), own_code };
        compile::ensure(layout, &go, &recipe, progress)
    }
}

/// The program that checks manifests against JSON schemas: the user's own if on the `PATH`, else built on first use.
pub fn kubeconform(layout: &Layout, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    const NAME: &str = "kubeconform";
    if let Some(path) = layout.on_path(NAME) {
        return Ok(path);
    }
    let directory = Layout::tool(NAME);
    let go = requirements::check(&directory)?;
    let package = "github.com/yannh/kubeconform/cmd/kubeconform";
    let recipe = Recipe { name: NAME, directory, package, linker_flags: String::new(), own_code: false };
    compile::ensure(layout, &go, &recipe, progress)
}

/// The folder with the definitions of the pinned release of External Secrets. Fetched on first use.
pub fn external_secrets_definitions() -> Result<PathBuf> {
    let module =
        pinned::folder(&Layout::tool("external-secrets"), "github.com/external-secrets/external-secrets")?;
    Ok(module.join("config/crds/bases"))
}

fn control_plane(sources: &Path) -> Result<Recipe> {
    Ok(Recipe {
        name: "plumb-cluster",
        directory: sources.to_path_buf(),
        package: ".",
        linker_flags: kubernetes_version(sources)?,
        own_code: true,
    })
}

fn kubectl(sources: &Path) -> Result<Recipe> {
    Ok(Recipe {
        name: "kubectl",
        directory: sources.to_path_buf(),
        package: "k8s.io/kubernetes/cmd/kubectl",
        linker_flags: kubernetes_version(sources)?,
        own_code: false,
    })
}

/// Without these the programs call themselves v0.0.0, and clients believe it.
fn kubernetes_version(sources: &Path) -> Result<String> {
    let version = pinned::version(sources, "k8s.io/kubernetes")?;
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    ))
}

fn kwok(sources: &Path) -> Recipe {
    Recipe {
        name: "kwok",
        directory: sources.join("programs/kwok"),
        package: "sigs.k8s.io/kwok/cmd/kwok",
        linker_flags: String::new(),
        own_code: false,
    }
}

fn helm(sources: &Path) -> Result<Recipe> {
    let directory = sources.join("programs/helm");
    let version = pinned::version(&directory, "helm.sh/helm/v3")?;
    Ok(Recipe {
        name: "helm",
        directory,
        package: "helm.sh/helm/v3/cmd/helm",
        linker_flags: format!("-X helm.sh/helm/v3/internal/version.version={version}"),
        own_code: false,
    })
}

fn kustomize(sources: &Path) -> Result<Recipe> {
    let directory = sources.join("programs/kustomize");
    let version = pinned::version(&directory, "sigs.k8s.io/kustomize/kustomize/v5")?;
    Ok(Recipe {
        name: "kustomize",
        directory,
        package: "sigs.k8s.io/kustomize/kustomize/v5",
        linker_flags: format!("-X sigs.k8s.io/kustomize/api/provenance.version={version}"),
        own_code: false,
    })
}
