//! Opening and closing (MPI 5.0, section 14.2).

use super::disk::{Disk, failed};
use super::hints::Hints;
use super::representation::Representation;
use super::shared::{SharedPointer, path_of};
use super::{File, Mapping, State, agree_on, same_everywhere};
use crate::comm::Communicator;
use crate::comm::exchange::{Channel, run};
use crate::constants::*;
use crate::errhandler::{Errhandler, ErrhandlerSlot};
use crate::info::Info;
use crate::process::Process;
use crate::{Error, Result};
use parnass_io::View;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const MODES: [(i32, &str); 9] = [
    (MPI_MODE_APPEND, "MPI_MODE_APPEND"),
    (MPI_MODE_CREATE, "MPI_MODE_CREATE"),
    (MPI_MODE_DELETE_ON_CLOSE, "MPI_MODE_DELETE_ON_CLOSE"),
    (MPI_MODE_EXCL, "MPI_MODE_EXCL"),
    (MPI_MODE_RDONLY, "MPI_MODE_RDONLY"),
    (MPI_MODE_RDWR, "MPI_MODE_RDWR"),
    (MPI_MODE_SEQUENTIAL, "MPI_MODE_SEQUENTIAL"),
    (MPI_MODE_UNIQUE_OPEN, "MPI_MODE_UNIQUE_OPEN"),
    (MPI_MODE_WRONLY, "MPI_MODE_WRONLY"),
];

fn check_mode(amode: i32) -> Result<()> {
    let wrong = |why: &str| {
        let names: Vec<&str> =
            MODES.iter().filter(|(bit, _)| amode & bit != 0).map(|&(_, name)| name).collect();
        let given =
            if names.is_empty() { "none of the MPI_MODE_* values".to_owned() } else { names.join(" | ") };
        Err(Error::new(MPI_ERR_AMODE, format!("amode is {amode} ({given}); {why}")))
    };
    let known = MODES.iter().fold(0, |all, (bit, _)| all | bit);
    let access = amode & (MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY);
    if amode & !known != 0 {
        wrong("it has bits that are no MPI_MODE_*")
    } else if access.count_ones() != 1 {
        wrong("exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY is needed")
    } else if access == MPI_MODE_RDONLY && amode & (MPI_MODE_CREATE | MPI_MODE_EXCL) != 0 {
        wrong("MPI_MODE_RDONLY goes neither with MPI_MODE_CREATE nor with MPI_MODE_EXCL")
    } else if access == MPI_MODE_RDWR && amode & MPI_MODE_SEQUENTIAL != 0 {
        wrong("MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL")
    } else {
        Ok(())
    }
}

/// Opens the system's file. Only the first process creates it, and fails if it is there.
fn open_here(path: &Path, amode: i32, first: bool, permissions: Option<u32>) -> Result<fs::File> {
    let bit = |bit: i32| amode & bit != 0;
    let mut options = fs::OpenOptions::new();
    options.read(!bit(MPI_MODE_WRONLY)).write(!bit(MPI_MODE_RDONLY));
    if first && bit(MPI_MODE_CREATE) {
        options.create(true).create_new(bit(MPI_MODE_EXCL)).mode(permissions.unwrap_or(0o666));
    }
    let file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if bit(MPI_MODE_CREATE) => Error::new(
            MPI_ERR_NO_SUCH_FILE,
            format!(
                "cannot open the file \"{}\": {error}; its folder must exist, and be seen by all processes",
                path.display()
            ),
        ),
        _ => failed("open", path, &error),
    })?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            Err(failed("open", path, &io::Error::from(io::ErrorKind::IsADirectory)))
        }
        Ok(_) => Ok(file),
        Err(error) => Err(failed("open", path, &error)),
    }
}

/// What the steps of opening find.
type Opened = (Arc<Disk>, Arc<SharedPointer>);

async fn open_everywhere(
    channel: Channel,
    path: PathBuf,
    amode: i32,
    permissions: Option<u32>,
) -> Result<Opened> {
    agree_on(&channel, check_mode(amode)).await?;
    same_everywhere(&channel, i64::from(amode), "amode").await?;
    let first = channel.rank() == 0;
    // The others come when the file is there.
    let mut opened = if first { Some(open_here(&path, amode, true, permissions)) } else { None };
    let own = match &mut opened {
        Some(Err(error)) => Err(error.clone()),
        _ => Ok(()),
    };
    agree_on(&channel, own).await?;
    let opened = match opened {
        Some(opened) => opened,
        None => open_here(&path, amode, false, None),
    };
    let (own, file) = match opened {
        Ok(file) => (Ok(()), Some(file)),
        Err(error) => (Err(error), None),
    };
    agree_on(&channel, own).await?;
    let file = file.expect("agreed that all have it");
    let pointer = SharedPointer::make(&channel, &path).await?;
    let disk = Disk::new(file, path, channel.process().counters().clone());
    if amode & MPI_MODE_APPEND != 0 {
        let own = if first { disk.size().and_then(|size| pointer.set(size)) } else { Ok(()) };
        agree_on(&channel, own).await?;
    }
    Ok((Arc::new(disk), Arc::new(pointer)))
}

impl File {
    /// MPI_File_open. Collective.
    pub fn open(
        process: &Arc<Process>,
        parent: &Arc<Communicator>,
        name: &[u8],
        amode: i32,
        info: &Info,
        errhandler: Errhandler,
    ) -> Result<Arc<File>> {
        let communicator = parent.internal(process)?;
        let channel = Channel::all(process, &communicator);
        let size = communicator.size() as u32;
        let mut hints = Hints::new(size);
        hints.update(info, size);
        let steps = open_everywhere(channel, path_of(name), amode, hints.permissions);
        let (disk, shared) = run(process, &communicator, steps)?;
        let position = if amode & MPI_MODE_APPEND != 0 { disk.size()? } else { 0 };
        let byte = process.datatypes().byte();
        let mapping = Mapping {
            view: View::of_bytes(0, byte.layout()),
            etype: Arc::clone(byte),
            filetype: Arc::clone(byte),
            representation: Representation::Native,
            byte: byte.layout().clone(),
        };
        Ok(Arc::new(File {
            communicator,
            disk,
            amode,
            shared,
            state: Mutex::new(State { mapping: Arc::new(mapping), position, split: None, hints }),
            errhandler: ErrhandlerSlot::new(errhandler),
        }))
    }

    /// An error while it cannot be closed.
    pub fn check_closable(&self) -> Result<()> {
        self.check_no_split()
    }

    /// MPI_File_close. Collective. The file of the system is closed when the last operation on it is over.
    pub fn close(&self, process: &Arc<Process>) -> Result<()> {
        let own = self.check_no_split();
        let channel = self.channel(process);
        let delete = self.amode & MPI_MODE_DELETE_ON_CLOSE != 0;
        let disk = Arc::clone(&self.disk);
        run(process, &self.communicator, async move {
            agree_on(&channel, own).await?;
            if !delete {
                return Ok(());
            }
            let result = if channel.rank() == 0 { super::delete(disk.path()) } else { Ok(()) };
            agree_on(&channel, result).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_go_together() {
        for amode in [
            MPI_MODE_RDONLY,
            MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE,
            MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND,
            MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_UNIQUE_OPEN,
        ] {
            assert_eq!(check_mode(amode), Ok(()));
        }
        for amode in [
            0,
            MPI_MODE_CREATE,
            MPI_MODE_RDONLY | MPI_MODE_RDWR,
            MPI_MODE_RDONLY | MPI_MODE_CREATE,
            MPI_MODE_RDONLY | MPI_MODE_EXCL,
            MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL,
            MPI_MODE_RDWR | 512,
            -1,
        ] {
            assert_eq!(check_mode(amode).unwrap_err().class(), MPI_ERR_AMODE, "{amode}");
        }
    }
}
