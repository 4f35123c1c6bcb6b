//! What a rendering writes to disk, counted before it is written: all files of all its sources and archives, and the sum
//! over all renderings that run at the same time.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::error::RenderError;
use crate::limits::Limits;

/// What all running renderings have written.
#[derive(Default)]
pub(crate) struct DiskAccount {
    n_bytes: Mutex<u64>,
}

/// What one rendering has written. Its bytes are free again when it is dropped, after its scratch directory.
pub(crate) struct DiskUse<'a> {
    account: &'a DiskAccount,
    limits: &'a Limits,
    n_bytes: Cell<u64>,
    n_files: Cell<usize>,
    /// The files that tools read, with their lengths.
    written: RefCell<Vec<(PathBuf, u64)>>,
}

impl<'a> DiskUse<'a> {
    pub(crate) fn new(account: &'a DiskAccount, limits: &'a Limits) -> Self {
        Self { account, limits, n_bytes: Cell::new(0), n_files: Cell::new(0), written: RefCell::default() }
    }

    /// How many bytes this rendering may still write.
    pub(crate) fn n_bytes_left(&self) -> u64 {
        self.limits.export_bytes.saturating_sub(self.n_bytes.get())
    }

    /// Counts a file or directory before it is written. `name` is shown in errors.
    pub(crate) fn count(&self, name: &str, n_bytes: usize) -> Result<(), RenderError> {
        let (n_bytes, limits) = (n_bytes as u64, self.limits);
        self.n_files.set(self.n_files.get() + 1);
        if self.n_files.get() > limits.export_files {
            let what = format!("number of files, at `{name}`,");
            return Err(RenderError::Limit { what, limit: limits.export_files as u64 });
        }
        if n_bytes > self.n_bytes_left() {
            let what = format!("size of all files, at `{name}`,");
            return Err(RenderError::Limit { what, limit: limits.export_bytes });
        }
        let mut all = self.account.n_bytes.lock();
        if all.saturating_add(n_bytes) > limits.all_export_bytes {
            return Err(RenderError::Busy { limit: limits.all_export_bytes });
        }
        *all += n_bytes;
        self.n_bytes.set(self.n_bytes.get() + n_bytes);
        Ok(())
    }

    /// Counts and writes a file.
    pub(crate) fn write(&self, path: &Path, content: impl AsRef<[u8]>) -> Result<(), RenderError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.count(&name, content.as_ref().len())?;
        self.note_written(path, content.as_ref().len());
        fs::write(path, content).map_err(|error| RenderError::scratch(&error))
    }

    /// Notes a file that tools read.
    pub(crate) fn note_written(&self, path: &Path, n_bytes: usize) {
        self.written.borrow_mut().push((path.to_owned(), n_bytes as u64));
    }

    /// Fails if a file that a tool reads was removed or cut, since the cache directory may be removed at any moment. A tool
    /// that did not find a template renders less than it should.
    pub(crate) fn check_written(&self, may_change: impl Fn(&Path) -> bool) -> Result<(), RenderError> {
        let is_there = |(path, n_bytes): &(PathBuf, u64)| {
            fs::symlink_metadata(path)
                .is_ok_and(|found| found.is_file() && (found.len() == *n_bytes || may_change(path)))
        };
        if self.written.borrow().iter().all(is_there) {
            return Ok(());
        }
        Err(RenderError::Scratch {
            reason: "files were removed or changed while a tool read them".to_owned(),
        })
    }
}

impl Drop for DiskUse<'_> {
    fn drop(&mut self) {
        let mut all = self.account.n_bytes.lock();
        *all = all.saturating_sub(self.n_bytes.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_limited_for_one_rendering_and_for_all() {
        let limits =
            Limits { export_bytes: 100, export_files: 3, all_export_bytes: 150, ..Limits::default() };
        let account = DiskAccount::default();
        let one = DiskUse::new(&account, &limits);
        one.count("a", 60).unwrap();
        let error = one.count("b", 41).unwrap_err();
        assert_eq!(error.to_string(), "size of all files, at `b`, is over the limit of 100");
        let other = DiskUse::new(&account, &limits);
        other.count("c", 90).unwrap();
        assert!(matches!(other.count("d", 1), Err(RenderError::Busy { limit: 150 })));
        drop(one);
        other.count("d", 1).unwrap();
        let error = other.count("e", 0).unwrap_err();
        assert_eq!(error.to_string(), "number of files, at `e`, is over the limit of 3");
        drop(other);
        assert_eq!(*account.n_bytes.lock(), 0);
    }
}
