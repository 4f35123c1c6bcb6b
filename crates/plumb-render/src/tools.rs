//! The programs that render.

use std::path::{Path, PathBuf};

/// The paths of the programs that render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// Helm.
    pub helm: PathBuf,
    /// Kustomize.
    pub kustomize: PathBuf,
    /// The command that runs [`crate::jsonnet_worker`]: plumb's own binary with a hidden argument. Jsonnet runs in a
    /// separate process because a Jsonnet program may loop forever or use all memory.
    pub jsonnet: Vec<PathBuf>,
    /// The command that runs [`crate::tool_launcher`]: plumb's own binary with a hidden argument. It confines and watches
    /// every tool.
    pub launcher: Vec<PathBuf>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            helm: PathBuf::from("helm"),
            kustomize: PathBuf::from("kustomize"),
            jsonnet: Vec::new(),
            launcher: Vec::new(),
        }
    }
}

impl Tools {
    /// The same with full paths, found where the sandbox would find them.
    pub(crate) fn located(self) -> Self {
        Self { helm: locate(self.helm), kustomize: locate(self.kustomize), ..self }
    }
}

/// The full path of a program, found where the sandbox would find it.
pub(crate) fn locate(program: PathBuf) -> PathBuf {
    if program.components().count() != 1 {
        return program;
    }
    let places = ["/usr/local/bin", "/usr/bin", "/bin"].map(|place| Path::new(place).join(&program));
    places.into_iter().find(|path| path.exists()).unwrap_or(program)
}
