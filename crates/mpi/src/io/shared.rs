//! The shared file pointer (MPI 5.0, section 14.4.4).
//!
//! Its value lies in a file of eight bytes that all processes have open and that nobody can find: it was unlinked as soon as
//! all had opened it, so that nothing is left behind. Whoever moves the pointer locks these bytes; no process waits for another
//! to call MPI.

use super::disk::failed;
use crate::comm::exchange::Channel;
use crate::constants::*;
use crate::{Error, Result};
use parnass_base::file::RangeLock;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A position in the stream of the view, common to all processes that have the file open.
#[derive(Debug)]
pub(super) enum SharedPointer {
    /// Of one process.
    Alone(Mutex<u64>),
    /// In a file, with a lock among the threads of this process.
    Kept { file: File, turn: Mutex<()>, path: PathBuf },
    /// No place was found where all processes could open a file.
    Absent(String),
}

/// What is looked for in the longest name.
const NAME_BYTES: usize = 4096;

fn create(folder: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let number = RandomState::new().build_hasher().finish();
        let path = folder.join(format!(".parnass-pointer-{}-{number:016x}", std::process::id()));
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => return file.write_all_at(&[0; 8], 0).map(|()| (path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

impl SharedPointer {
    /// At the start of the file. All members of the channel make it together; `data` is the file that they have open.
    pub(super) async fn make(channel: &Channel, data: &Path) -> Result<SharedPointer> {
        if channel.size() == 1 {
            return Ok(SharedPointer::Alone(Mutex::new(0)));
        }
        // On one node there is a folder for temporary files; what nodes have in common is the file's own folder.
        let own_folder =
            data.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut reasons = Vec::new();
        for folder in [std::env::temp_dir(), own_folder.to_path_buf()] {
            let made = if channel.rank() == 0 { Some(create(&folder)) } else { None };
            let mut name = vec![0; NAME_BYTES];
            if let Some(Ok((path, _))) = &made {
                let bytes = std::path::absolute(path)
                    .unwrap_or_else(|_| path.clone())
                    .into_os_string()
                    .into_encoded_bytes();
                if bytes.len() < NAME_BYTES {
                    name[..bytes.len()].copy_from_slice(&bytes);
                }
            }
            let name = channel.broadcast(0, name).await?;
            let path = path_of(&name[..name.iter().position(|&byte| byte == 0).unwrap_or(0)]);
            let file = match made {
                Some(made) => made.map(|(_, file)| file),
                None => File::options().read(true).write(true).open(&path),
            };
            let everywhere =
                channel.allgather(&[u8::from(file.is_ok())]).await?.iter().all(|&there| there == 1);
            if channel.rank() == 0 && !path.as_os_str().is_empty() {
                // What cannot be unlinked was not made.
                let _ = std::fs::remove_file(&path);
            }
            match file {
                Ok(file) if everywhere => {
                    return Ok(SharedPointer::Kept { file, turn: Mutex::new(()), path });
                }
                Ok(_) => {
                    reasons.push(format!("another process cannot open a file in \"{}\"", folder.display()))
                }
                Err(error) => reasons.push(format!("no file in \"{}\": {error}", folder.display())),
            }
        }
        Ok(SharedPointer::Absent(reasons.join("; ")))
    }

    /// Replaces the value by what `change` makes of it; the old one.
    pub(super) fn update(&self, change: impl FnOnce(u64) -> Result<u64>) -> Result<u64> {
        match self {
            SharedPointer::Alone(value) => {
                let mut value = value.lock().unwrap_or_else(PoisonError::into_inner);
                let old = *value;
                *value = change(old)?;
                Ok(old)
            }
            SharedPointer::Kept { file, turn, path } => {
                let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
                let broken = |error: io::Error| failed("keep a shared file pointer in", path, &error);
                let _range = RangeLock::wait(file, 0, 8, true).map_err(broken)?;
                let mut bytes = [0; 8];
                file.read_exact_at(&mut bytes, 0).map_err(broken)?;
                let old = u64::from_le_bytes(bytes);
                let new = change(old)?;
                if new != old {
                    file.write_all_at(&new.to_le_bytes(), 0).map_err(broken)?;
                }
                Ok(old)
            }
            SharedPointer::Absent(reasons) => Err(Error::new(
                MPI_ERR_UNSUPPORTED_OPERATION,
                format!(
                    "there is no shared file pointer: {reasons}; set TMPDIR to a folder that all processes can write to (or, \
                     between nodes, let them write to the folder of the file), or use offsets of your own"
                ),
            )),
        }
    }

    /// Its value.
    pub(super) fn get(&self) -> Result<u64> {
        self.update(Ok)
    }

    /// Moves it by so many bytes; where it was.
    pub(super) fn advance(&self, bytes: u64) -> Result<u64> {
        self.update(|old| {
            old.checked_add(bytes).filter(|&new| new <= i64::MAX as u64).ok_or_else(|| {
                Error::new(
                    MPI_ERR_ARG,
                    format!("the shared file pointer would pass 2^63 - 1 bytes: {bytes} behind {old}; access less, or seek back"),
                )
            })
        })
    }

    /// Sets it, if there is one.
    pub(super) fn set(&self, position: u64) -> Result<()> {
        match self {
            SharedPointer::Absent(_) => Ok(()),
            _ => self.update(|_| Ok(position)).map(|_| ()),
        }
    }
}

/// A name as the program gave it: bytes.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}
