//! A small disk that can be full or read-only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::skip::skipped;

/// The name of the file that fills it.
const FILLER: &str = "filler";

/// A disk in memory, mounted at a directory until it is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts an empty disk of this size at the directory, which is made. `None` if this process may not mount: then the
    /// test is skipped.
    pub fn at(directory: &Path, kib: u32) -> Result<Option<Self>> {
        fs::create_dir_all(directory).with_context(|| format!("make {}", directory.display()))?;
        let options = format!("size={kib}k,mode=0700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "plumb-test"])
            .arg(directory)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            skipped("MOUNT", "this process may not mount a disk")?;
            return Ok(None);
        }
        Ok(Some(Self(directory.to_owned())))
    }

    /// Fills it, to the last byte.
    pub fn fill(&self) -> Result<()> {
        let mut file = fs::File::create(self.0.join(FILLER)).context("make the file that fills the disk")?;
        let full = std::io::copy(&mut std::io::repeat(0), &mut file);
        let is_full = full.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::StorageFull);
        ensure!(is_full, "the disk is not full: {full:?}");
        Ok(())
    }

    /// Makes room again.
    pub fn make_room(&self) -> Result<()> {
        fs::remove_file(self.0.join(FILLER)).context("remove the file that fills the disk")
    }

    /// Makes it read-only for everything that is opened from now on.
    pub fn make_read_only(&self) -> Result<()> {
        // A mount of its own: another one can be changed although files are open.
        run(Command::new("mount").arg("--bind").args([&self.0, &self.0]))?;
        run(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&self.0))
    }

    /// Makes it writable again.
    pub fn make_writable(&self) -> Result<()> {
        run(Command::new("umount").arg("--lazy").arg(&self.0))
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A second mount is there if a test ends while the disk is read-only.
        while run(Command::new("umount").arg("--lazy").arg(&self.0)).is_ok() {}
    }
}
