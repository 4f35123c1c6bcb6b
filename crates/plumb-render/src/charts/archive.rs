//! Unpacks chart archives in memory. Paths that lead outside the archive are refused.

use std::collections::HashSet;
use std::io::Read;

use plumb_core::source::RepoPath;

use crate::limits::Limits;
use crate::memory_files::MemoryFiles;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Not a gzipped tar.
    #[error("not a gzipped tar archive: {0}")]
    Format(String),
    /// A path that leads outside, or is absolute.
    #[error("it contains the path {0:?}, which leads outside")]
    Path(String),
    /// A link, device or pipe.
    #[error("it contains {0:?}, which is neither a file nor a directory")]
    Kind(String),
    /// A path that is too long.
    #[error("it contains a path of {0} bytes, more than {MAX_PATH}")]
    LongPath(usize),
    /// Too many files or bytes.
    #[error("it unpacks to more than {files} files and directories or {bytes} bytes")]
    TooLarge {
        /// Most files and directories.
        files: usize,
        /// Most bytes.
        bytes: u64,
    },
}

/// Most bytes that are unpacked into memory, about as much as Helm allows.
const MAX_UNPACKED: u64 = 128 << 20;
const MAX_PATH: usize = 1024;

/// The files of the archive's single directory.
pub(crate) fn unpack(archive: impl Read, limits: &Limits) -> Result<MemoryFiles, ArchiveError> {
    unpack_below(archive, limits, 1)
}

/// The files of an archive that a user sent. They have no directory of their own around them.
pub fn unpack_upload(archive: &[u8], limits: &Limits) -> Result<MemoryFiles, ArchiveError> {
    unpack_below(archive, limits, 0)
}

/// The files, without the first directories of their paths.
fn unpack_below(archive: impl Read, limits: &Limits, skipped: usize) -> Result<MemoryFiles, ArchiveError> {
    let format = |error: std::io::Error| ArchiveError::Format(error.to_string());
    let bytes = limits.export_bytes.min(MAX_UNPACKED);
    let too_large = || ArchiveError::TooLarge { files: limits.export_files, bytes };
    // The limit applies to the unpacked bytes, headers included, so a decompression bomb is stopped early.
    let unpacked = flate2::read::MultiGzDecoder::new(std::io::BufReader::new(archive)).take(bytes);
    let mut archive = tar::Archive::new(unpacked);
    let mut n_bytes = 0_u64;
    let mut files = Vec::new();
    let mut n_entries = 0;
    let mut directories = HashSet::from([RepoPath::root()]);
    for entry in archive.entries().map_err(format)? {
        let mut entry = entry.map_err(format)?;
        n_entries += 1;
        if n_entries > limits.export_files {
            return Err(too_large());
        }
        let path_bytes = entry.path_bytes();
        if path_bytes.len() > MAX_PATH {
            return Err(ArchiveError::LongPath(path_bytes.len()));
        }
        let written = String::from_utf8_lossy(&path_bytes).into_owned();
        n_bytes = n_bytes.saturating_add(entry.size());
        if n_bytes > bytes {
            return Err(too_large());
        }
        match entry.header().entry_type() {
            tar::EntryType::Regular | tar::EntryType::Continuous => {}
            tar::EntryType::Directory | tar::EntryType::XGlobalHeader => continue,
            _ => return Err(ArchiveError::Kind(written)),
        }
        let path = RepoPath::parse(&written).map_err(|_| ArchiveError::Path(written.clone()))?;
        // The first component of a chart is its name.
        let below: Vec<&str> = path.components().skip(skipped).collect();
        if below.is_empty() {
            return Err(ArchiveError::Path(written));
        }
        let path = RepoPath::parse(&below.join("/")).map_err(|_| ArchiveError::Path(written.clone()))?;
        // Count directories that have no entry of their own too: they take memory.
        let mut parent = path.parent();
        while directories.insert(parent.clone()) {
            parent = parent.parent();
        }
        if files.len() + directories.len() > limits.export_files {
            return Err(too_large());
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(format)?;
        files.push((path, content));
    }
    if archive.into_inner().limit() == 0 {
        return Err(too_large());
    }
    Ok(MemoryFiles::new(files))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use plumb_core::source::SourceFiles as _;

    use super::*;

    fn archive(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            // Written by hand: the library refuses to write what an attacker would.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&builder.into_inner().unwrap()).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn files_come_without_the_charts_name() {
        let bytes = archive(&[
            ("demo/Chart.yaml", tar::EntryType::Regular, b"name: demo"),
            ("demo/templates/a.yaml", tar::EntryType::Regular, b"x"),
        ]);
        let files = unpack(&bytes[..], &Limits::default()).unwrap();
        assert_eq!(files.read(&RepoPath::parse("Chart.yaml").unwrap()).unwrap(), b"name: demo");
        assert_eq!(files.list(&RepoPath::root()).unwrap().len(), 2);
    }

    #[test]
    fn what_leads_outside_or_is_no_file_is_refused() {
        for (path, kind) in [
            ("../evil", tar::EntryType::Regular),
            ("demo/../../evil", tar::EntryType::Regular),
            ("/etc/passwd", tar::EntryType::Regular),
            ("demo/link", tar::EntryType::Symlink),
            ("demo/hard", tar::EntryType::Link),
            ("demo/pipe", tar::EntryType::Fifo),
            ("demo/device", tar::EntryType::Char),
        ] {
            assert!(unpack(&archive(&[(path, kind, b"")])[..], &Limits::default()).is_err(), "{path}");
        }
        assert!(unpack(&b"not an archive"[..], &Limits::default()).is_err());
    }

    #[test]
    fn an_upload_keeps_its_paths() {
        let bytes = archive(&[("app/a.yaml", tar::EntryType::Regular, b"x")]);
        let files = unpack_upload(&bytes, &Limits::default()).unwrap();
        assert_eq!(files.read(&RepoPath::parse("app/a.yaml").unwrap()).unwrap(), b"x");
        assert!(unpack_upload(&archive(&[("a", tar::EntryType::Symlink, b"")]), &Limits::default()).is_err());
    }

    #[test]
    fn bombs_are_stopped() {
        let limits = Limits { export_bytes: 1 << 20, export_files: 10, ..Limits::default() };
        let zeros = vec![0; 8 << 20];
        let bomb = unpack(&archive(&[("demo/zeros", tar::EntryType::Regular, &zeros)])[..], &limits);
        assert!(matches!(bomb, Err(ArchiveError::TooLarge { .. })));
        let names: Vec<String> = (0..20).map(|n| format!("demo/{n}")).collect();
        let many: Vec<_> =
            names.iter().map(|name| (name.as_str(), tar::EntryType::Regular, &b"x"[..])).collect();
        assert!(matches!(unpack(&archive(&many)[..], &limits), Err(ArchiveError::TooLarge { .. })));
        for kind in [tar::EntryType::Regular, tar::EntryType::Directory] {
            let names: Vec<String> = (0..8).map(|n| format!("demo/{n}/{n}/x")).collect();
            let mut deep: Vec<_> = names.iter().map(|name| (name.as_str(), kind, &b""[..])).collect();
            deep.extend_from_within(..4);
            assert!(
                matches!(unpack(&archive(&deep)[..], &limits), Err(ArchiveError::TooLarge { .. })),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn endless_paths_are_refused() {
        let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(encoder);
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        builder.append_data(&mut header, format!("demo/{}x", "d/".repeat(10_000)), &b""[..]).unwrap();
        let bytes = builder.into_inner().unwrap().finish().unwrap();
        assert!(matches!(unpack(&bytes[..], &Limits::default()), Err(ArchiveError::LongPath(_))));
    }
}
