//! What differs between operating systems, for all layers below the command line.

use std::fs::File;
use std::io;
use std::path::Path;

/// The name of this machine, if the system tells.
pub(crate) fn hostname() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().into())
}

/// Whether an open file is the one of that name.
#[cfg(unix)]
pub(crate) fn stands(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(mine), Ok(there)) = (file.metadata(), path.metadata()) else {
        return false;
    };
    (mine.dev(), mine.ino()) == (there.dev(), there.ino())
}

/// Whether an open file is the one of that name: a file that is open cannot be removed.
#[cfg(not(unix))]
pub(crate) fn stands(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Flush the names in a folder to the disk.
pub(crate) fn flush_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere folders are no files.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Write bytes from a place of a file on.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

/// Fill `bytes` from a place of a file on.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Write bytes from a place of a file on.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        (bytes, at) = (&bytes[written..], at + written as u64);
    }
    Ok(())
}

/// Fill `bytes` from a place of a file on.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (bytes, at) = (&mut bytes[read..], at + read as u64);
    }
    Ok(())
}
