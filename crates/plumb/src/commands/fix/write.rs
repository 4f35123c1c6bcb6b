//! Writing files in place: all of them, or none.

use std::io::Write as _;
use std::path::PathBuf;

use tempfile::NamedTempFile;

use super::place::FilePlace;
use super::plan::Contents;
use crate::error::CommandError;

/// Replaces the files. Everything is written beside them first; only then they are exchanged.
pub(super) fn write(before: &Contents, after: &Contents) -> Result<(), CommandError> {
    let mut ready: Vec<(PathBuf, NamedTempFile)> = Vec::with_capacity(after.len());
    for (place, content) in after {
        let file = beside(place, content).map_err(|error| failed(place, error))?;
        ready.push((place.absolute(), file));
    }
    let mut done: Vec<&FilePlace> = Vec::new();
    for ((path, file), place) in ready.into_iter().zip(after.keys()) {
        if let Err(error) = file.persist(&path) {
            undo(before, &done);
            return Err(failed(place, error.error));
        }
        done.push(place);
    }
    Ok(())
}

fn failed(place: &FilePlace, error: std::io::Error) -> CommandError {
    CommandError::because(format!("write {}", place.absolute().display()), error)
        .hint("no file was changed; --patch only prints the changes")
}

/// A file in the same folder, with the same permissions.
fn beside(place: &FilePlace, content: &[u8]) -> std::io::Result<NamedTempFile> {
    let path = place.absolute();
    let permissions = std::fs::metadata(&path)?.permissions();
    if permissions.readonly() {
        return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    }
    let folder = path.parent().unwrap_or(&place.root);
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// The exchange of a file failed: the others get back what they had.
fn undo(before: &Contents, done: &[&FilePlace]) {
    for place in done {
        if let Some(content) = before.get(*place)
            && let Ok(file) = beside(place, content)
        {
            // The first error is the one to report.
            let _ = file.persist(place.absolute());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn all_files_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        for file in ["a.yaml", "sub/b.yaml"] {
            std::fs::write(root.join(file), "old").unwrap();
        }
        std::fs::set_permissions(root.join("a.yaml"), PermissionsExt::from_mode(0o640)).unwrap();
        let contents = |text: &str| -> Contents {
            let places = ["a.yaml", "sub/b.yaml"].map(|file| FilePlace::find(&root, file).unwrap());
            places.into_iter().map(|place| (place, text.as_bytes().to_vec())).collect()
        };
        // A file that may not be written is refused, also if its folder would permit to exchange it.
        std::fs::set_permissions(root.join("sub/b.yaml"), PermissionsExt::from_mode(0o444)).unwrap();
        let refused = write(&contents("old"), &contents("new"));
        assert!(refused.is_err_and(|error| error.message().contains("sub/b.yaml")));
        let text = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
        assert_eq!([text("a.yaml"), text("sub/b.yaml")], ["old", "old"]);
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 2);
        std::fs::set_permissions(root.join("sub/b.yaml"), PermissionsExt::from_mode(0o644)).unwrap();
        write(&contents("old"), &contents("new")).unwrap();
        assert_eq!([text("a.yaml"), text("sub/b.yaml")], ["new", "new"]);
        let mode = std::fs::metadata(root.join("a.yaml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn a_link_out_of_the_working_copy_is_refused() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("a.yaml"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path().join("a.yaml"), inside.path().join("link.yaml")).unwrap();
        std::fs::write(inside.path().join("real.yaml"), "x").unwrap();
        std::os::unix::fs::symlink("real.yaml", inside.path().join("alias.yaml")).unwrap();
        let found = |file: &str| FilePlace::find(inside.path(), file);
        assert!(found("link.yaml").is_err_and(|why| why.contains("leads outside of the working copy")));
        assert!(found("../x").is_err());
        assert_eq!(found("alias.yaml").unwrap().path.as_str(), "real.yaml");
    }
}
