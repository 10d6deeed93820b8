//! What differs between operating systems, for all layers below the command line.

use std::fs::{File, OpenOptions};
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

/// Whether a file is on NFS; elsewhere than on Linux nobody says so.
pub(crate) fn is_on_nfs(path: &Path) -> bool {
    let (Ok(path), Ok(mounts)) = (
        path.canonicalize(),
        std::fs::read_to_string("/proc/self/mounts"),
    ) else {
        return false;
    };
    kind_of_mount(&path, &mounts).is_some_and(|kind| kind == "nfs" || kind == "nfs4")
}

/// The kind of file system of a path, as /proc/self/mounts has it: "host:/home /home nfs4 rw 0 0".
fn kind_of_mount(path: &Path, mounts: &str) -> Option<String> {
    let all = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?.replace("\\040", " ");
        Some((place, words.next()?.to_string()))
    });
    // Of those at the same place the last one hides the others.
    all.filter(|(place, _)| path.starts_with(place))
        .max_by_key(|(place, _)| Path::new(place).components().count())
        .map(|(_, kind)| kind)
}

/// Let every write wait for the disk, and change no byte beside those that are written.
pub(crate) fn write_through(options: &mut OpenOptions) {
    #[cfg(target_os = "linux")]
    {
        // O_DSYNC
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, 0o10000);
    }
    let _ = options;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_path_is_the_innermost() {
        let mounts = "/dev/sda / ext4 rw 0 0\nhost:/home /home nfs4 rw 0 0\nhost:/a /home/a\\040b nfs rw 0 0\ntmpfs /home/scratch tmpfs rw 0 0\n/dev/sdb /home/scratch ext4 rw 0 0\n";
        let kind = |path: &str| kind_of_mount(Path::new(path), mounts).unwrap();
        assert_eq!(kind("/homes/x"), "ext4");
        assert_eq!(kind("/home/x/draws.zarr"), "nfs4");
        assert_eq!(kind("/home/a b/x"), "nfs");
        assert_eq!(kind("/home/scratch/x"), "ext4");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_written_through_is_what_was_written() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let mut options = File::options();
        write_through(options.read(true).write(true));
        let file = options.open(place.path()).unwrap();
        write_all_at(&file, b"abc", 2).unwrap();
        assert_eq!(std::fs::read(place.path()).unwrap(), b"\0\0abc");
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        let said = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap();
        let flags = said.lines().find_map(|l| l.strip_prefix("flags:")).unwrap();
        let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
        assert_ne!(flags & 0o10000, 0, "{said}");
    }
}
