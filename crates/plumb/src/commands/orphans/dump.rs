//! Files from which `kubectl apply -f` restores deleted objects.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use plumb_core::object::ObjectKey;
use plumb_core::plan::Tombstone;

use crate::error::CommandError;

/// Writes one object to a new file, readable only by its user: it may be a Secret. Returns its path.
pub(super) fn write(directory: &Path, number: usize, tombstone: &Tombstone) -> Result<PathBuf, CommandError> {
    let path = directory.join(file_name(number, &tombstone.key));
    let failed = |error| CommandError::because(format!("write the dump {}", path.display()), error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    // A dump of an earlier run must not be lost.
    let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(|error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        failed(error).hint_if(exists, "use another directory: files are not overwritten")
    })?;
    let text = plumb_crd::yaml::to_yaml(tombstone.restorable().value());
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(path)
}

/// The number keeps the order: `kubectl apply -f DIRECTORY` restores the last one that was deleted first, if it is counted
/// down. Names of objects may have any character that a path segment of a URL may have.
fn file_name(number: usize, key: &ObjectKey) -> String {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|char| if char.is_ascii_alphanumeric() || "-.".contains(char) { char } else { '_' })
            .collect()
    };
    let namespace = key.namespace.as_deref().map(|namespace| format!("{}-", plain(namespace)));
    let kind = plain(&key.kind.to_lowercase());
    format!(
        "{:04}-{kind}-{}{}.yaml",
        9999_usize.saturating_sub(number),
        namespace.unwrap_or_default(),
        plain(&key.name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_the_directory_and_the_last_deleted_comes_first() {
        let key = |kind: &str, name: &str| ObjectKey::new("", kind, Some("a".to_owned()), name);
        assert_eq!(file_name(1, &key("ConfigMap", "../x/y:z")), "9998-configmap-a-.._x_y_z.yaml");
        assert!(file_name(2, &key("ConfigMap", "b")) < file_name(1, &key("ConfigMap", "a")));
    }
}
