//! What differs between operating systems, for all layers below the command line.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of this machine, if the system tells.
pub(crate) fn hostname() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().into())
}

/// When a process began, if the system tells.
pub(crate) fn start_of(process: u64) -> Option<SystemTime> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may have anything in it, but it ends with the last parenthesis. Field 22: hundredths of seconds since the machine began.
    let ticks: u64 = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)?
        .parse()
        .ok()?;
    let all = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = all
        .lines()
        .find_map(|l| l.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(boot) + Duration::from_millis(10 * ticks))
}

/// Whether two files belong to the same user.
#[cfg(unix)]
pub(crate) fn same_user(path: &Path, file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(path.metadata()?.uid() == file.metadata()?.uid())
}

/// Whether two files belong to the same user: not told here, so they do.
#[cfg(not(unix))]
pub(crate) fn same_user(_: &Path, _: &File) -> io::Result<bool> {
    Ok(true)
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

/// Whether a process holds the lock of an open file (`flock`), as the system says; elsewhere than on Linux whoever says so.
pub(crate) fn holds_lock(process: u32, file: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        // 1: FLOCK  ADVISORY  WRITE 4711 fe:00:265 0 EOF. The device is not that of `metadata` on every file system.
        let inode = file
            .metadata()
            .map(|m| std::os::unix::fs::MetadataExt::ino(&m));
        let (Ok(inode), Ok(locks)) = (inode, std::fs::read_to_string("/proc/locks")) else {
            return false;
        };
        let (process, inode) = (process.to_string(), format!(":{inode}"));
        locks.lines().map(str::split_whitespace).any(|mut words| {
            words.nth(1) == Some("FLOCK")
                && words.nth(2) == Some(&process)
                && words.next().is_some_and(|place| place.ends_with(&inode))
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        process > 1
    }
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
