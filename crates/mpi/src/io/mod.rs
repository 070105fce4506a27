//! Files (MPI 5.0, chapter 14), on the files of the operating system.
//!
//! ```text
//!   access.rs      which bytes a call means, and which pointer moves      pointers.rs, shared.rs
//!   collective.rs  two-phase: processes hand their pieces to aggregators
//!   transfer.rs    one process: memory <-> stream of the view             representation.rs
//!   disk.rs        the system's file; worker.rs does its work for nonblocking calls
//! ```
//!
//! A file's view turns it into a stream of bytes (`parnass_io::View`); all positions here are positions in that stream.

mod access;
mod collective;
mod disk;
mod hints;
mod open;
mod pointers;
mod representation;
mod shared;
mod transfer;
mod worker;

pub use access::{Direction, Pointer};
pub use disk::delete;
pub use representation::{Conversion, ExtentFunction, UserRepresentation};

use crate::comm::Communicator;
use crate::comm::exchange::{Channel, run};
use crate::constants::*;
use crate::datatype::Datatype;
use crate::errhandler::{Errhandler, ErrhandlerSlot};
use crate::group::Group;
use crate::info::Info;
use crate::process::Process;
use crate::request::Request;
use crate::{Error, Result};
use disk::Disk;
use hints::Hints;
use parnass_base::bytes::{FNV_BASIS, fnv};
use parnass_datatype::Layout;
use parnass_io::View;
use representation::Representation;
use shared::SharedPointer;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a process keeps for all its files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    worker: worker::Worker,
    representations: representation::Representations,
}

/// A file that the processes of a communicator have opened together.
pub struct File {
    /// Of the library's own, for what the processes say to each other about this file.
    communicator: Arc<Communicator>,
    disk: Arc<Disk>,
    amode: i32,
    shared: Arc<SharedPointer>,
    state: Mutex<State>,
    errhandler: ErrhandlerSlot,
}

/// What calls change.
struct State {
    mapping: Arc<Mapping>,
    /// The individual file pointer.
    position: u64,
    split: Option<Split>,
    hints: Hints,
}

/// A split collective call that was begun.
struct Split {
    direction: Direction,
    pointer: Pointer,
    request: Arc<Request>,
}

/// A view with the datatypes that it was made of.
struct Mapping {
    view: View,
    etype: Arc<Datatype>,
    filetype: Arc<Datatype>,
    representation: Representation,
    /// One byte.
    byte: Layout,
}

/// What MPI_File_get_view tells.
#[derive(Debug)]
pub struct ViewParts {
    pub displacement: i64,
    pub etype: Arc<Datatype>,
    pub filetype: Arc<Datatype>,
    pub representation: Box<[u8]>,
}

impl fmt::Debug for File {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("File")
            .field("path", &self.disk.path())
            .field("amode", &self.amode)
            .finish_non_exhaustive()
    }
}

/// MPI_Register_datarep.
pub fn register_representation(process: &Process, representation: UserRepresentation) -> Result<()> {
    process.files.representations.register(representation)
}

/// What all members of the channel get: success if all had it, else the error of the first that had none.
async fn agree_on(channel: &Channel, own: Result<()>) -> Result<()> {
    /// Longer texts are cut.
    const TEXT_BYTES: usize = 512;
    let class = own.as_ref().err().map_or(0, Error::class);
    let classes = channel.allgather(&class.to_le_bytes()).await?;
    let classes: Vec<i32> = classes
        .chunks_exact(4)
        .map(|bytes| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    let Some(first) = classes.iter().position(|&class| class != MPI_SUCCESS) else { return own };
    let mut text = vec![0; TEXT_BYTES];
    if first as i32 == channel.rank()
        && let Err(error) = &own
    {
        let bytes = error.message().as_bytes();
        let length = bytes.len().min(TEXT_BYTES);
        text[..length].copy_from_slice(&bytes[..length]);
    }
    let text = channel.broadcast(first as i32, text).await?;
    own?;
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    let text = String::from_utf8_lossy(&text[..end]).into_owned();
    Err(Error::new(classes[first], format!("rank {first} of the file's group: {text}")))
}

impl File {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mapping(&self) -> Arc<Mapping> {
        Arc::clone(&self.state().mapping)
    }

    fn channel(&self, process: &Arc<Process>) -> Channel {
        Channel::all(process, &self.communicator)
    }

    /// How messages call it.
    pub fn describe(&self) -> String {
        format!("the file \"{}\"", self.disk.path().display())
    }

    /// The communicator of the library's own that carries its operations and is named by its requests.
    pub fn communicator(&self) -> &Arc<Communicator> {
        &self.communicator
    }

    /// Its error handler.
    pub fn errhandler(&self) -> Errhandler {
        self.errhandler.get()
    }

    /// MPI_File_set_errhandler.
    pub fn set_errhandler(&self, errhandler: Errhandler) {
        self.errhandler.set(errhandler);
    }

    /// MPI_File_get_amode.
    pub fn amode(&self) -> i32 {
        self.amode
    }

    /// MPI_File_get_group.
    pub fn group(&self) -> &Group {
        self.communicator.group()
    }

    /// MPI_File_get_info: the hints in use.
    pub fn info(&self) -> Info {
        self.state().hints.info()
    }

    /// MPI_File_set_info.
    pub fn set_info(&self, info: &Info) {
        let size = self.communicator.size() as u32;
        self.state().hints.update(info, size);
    }

    /// MPI_File_get_size.
    pub fn size(&self) -> Result<i64> {
        self.disk.size().map(|size| size as i64)
    }

    /// An error unless it may be written.
    fn check_writable(&self) -> Result<()> {
        match self.amode & MPI_MODE_RDONLY {
            0 => Ok(()),
            _ => Err(Error::new(
                MPI_ERR_READ_ONLY,
                format!(
                    "{} was opened with MPI_MODE_RDONLY and cannot be changed; open it with MPI_MODE_RDWR or MPI_MODE_WRONLY",
                    self.describe()
                ),
            )),
        }
    }

    /// Process 0 does `work`; all get its result. `own` is what this process has to say before.
    fn first_does(
        &self,
        process: &Arc<Process>,
        own: Result<()>,
        argument: i64,
        name: &'static str,
        work: impl FnOnce(&Disk) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let channel = self.channel(process);
        let disk = Arc::clone(&self.disk);
        run(process, &self.communicator, async move {
            agree_on(&channel, own).await?;
            same_everywhere(&channel, argument, name).await?;
            let result = if channel.rank() == 0 { work(&disk) } else { Ok(()) };
            agree_on(&channel, result).await
        })
    }

    fn check_size(&self, size: i64) -> Result<()> {
        self.check_writable()?;
        self.check_no_split()?;
        match size {
            0.. => Ok(()),
            _ => Err(Error::new(MPI_ERR_ARG, format!("size is {size}; it must be 0 or more"))),
        }
    }

    /// MPI_File_set_size. Collective.
    pub fn set_size(&self, process: &Arc<Process>, size: i64) -> Result<()> {
        let own = self.check_size(size);
        self.first_does(process, own, size, "size", move |disk| disk.set_size(size as u64))
    }

    /// MPI_File_preallocate. Collective.
    pub fn preallocate(&self, process: &Arc<Process>, size: i64) -> Result<()> {
        let own = self.check_size(size);
        self.first_does(process, own, size, "size", move |disk| disk.allocate(size as u64))
    }

    /// MPI_File_sync. Collective.
    pub fn sync(&self, process: &Arc<Process>) -> Result<()> {
        let own = self.check_no_split().and_then(|()| match self.amode & MPI_MODE_RDONLY {
            0 => self.disk.sync(),
            _ => Ok(()),
        });
        let channel = self.channel(process);
        run(process, &self.communicator, async move { agree_on(&channel, own).await })
    }

    /// MPI_File_get_atomicity.
    pub fn atomicity(&self) -> bool {
        self.disk.is_atomic()
    }

    /// MPI_File_set_atomicity. Collective.
    pub fn set_atomicity(&self, process: &Arc<Process>, atomic: bool) -> Result<()> {
        let channel = self.channel(process);
        let own = self.check_no_split();
        run(process, &self.communicator, async move {
            agree_on(&channel, own).await?;
            same_everywhere(&channel, i64::from(atomic), "flag").await
        })?;
        self.disk.set_atomic(atomic);
        Ok(())
    }

    /// MPI_File_get_type_extent.
    pub fn type_extent(&self, process: &Process, datatype: &Arc<Datatype>) -> Result<i64> {
        self.mapping().representation.extent(datatype, process.datatypes().byte())
    }

    /// MPI_File_get_view.
    pub fn view(&self) -> ViewParts {
        let mapping = self.mapping();
        ViewParts {
            displacement: mapping.view.displacement() as i64,
            etype: Arc::clone(&mapping.etype),
            filetype: Arc::clone(&mapping.filetype),
            representation: mapping.representation.name().into(),
        }
    }

    /// MPI_File_set_view. Collective; both kinds of pointers go to the start of the new view.
    pub fn set_view(
        &self,
        process: &Arc<Process>,
        displacement: i64,
        etype: &Arc<Datatype>,
        filetype: &Arc<Datatype>,
        representation: &[u8],
        hints: &Info,
    ) -> Result<()> {
        let mapping = self
            .check_no_split()
            .and_then(|()| self.new_mapping(process, displacement, etype, filetype, representation));
        let (own, mapping) = match mapping {
            Ok(mapping) => (Ok(()), Some(Arc::new(mapping))),
            Err(error) => (Err(error), None),
        };
        let channel = self.channel(process);
        let shared = Arc::clone(&self.shared);
        let hash = fnv(FNV_BASIS, representation) as i64;
        run(process, &self.communicator, async move {
            agree_on(&channel, own).await?;
            same_everywhere(&channel, hash, "datarep (as a checksum)").await?;
            let result = if channel.rank() == 0 { shared.set(0) } else { Ok(()) };
            agree_on(&channel, result).await
        })?;
        let size = self.communicator.size() as u32;
        let mut state = self.state();
        state.hints.update(hints, size);
        if let Some(mapping) = mapping {
            state.mapping = mapping;
        }
        state.position = 0;
        Ok(())
    }

    fn new_mapping(
        &self,
        process: &Process,
        displacement: i64,
        etype: &Arc<Datatype>,
        filetype: &Arc<Datatype>,
        representation: &[u8],
    ) -> Result<Mapping> {
        let representation = process.files.representations.find(representation)?;
        let sequential = self.amode & MPI_MODE_SEQUENTIAL != 0;
        let displacement = match displacement {
            MPI_DISPLACEMENT_CURRENT if sequential => self.mapping().view.offset_of(self.shared.get()?),
            MPI_DISPLACEMENT_CURRENT => {
                return Err(Error::new(
                    MPI_ERR_ARG,
                    "disp is MPI_DISPLACEMENT_CURRENT, which is for files opened with MPI_MODE_SEQUENTIAL; give a displacement in bytes",
                ));
            }
            _ if sequential => {
                return Err(Error::new(
                    MPI_ERR_ARG,
                    format!(
                        "disp is {displacement}; a file opened with MPI_MODE_SEQUENTIAL takes MPI_DISPLACEMENT_CURRENT only"
                    ),
                ));
            }
            _ => u64::try_from(displacement).map_err(|_| {
                Error::new(MPI_ERR_ARG, format!("disp is {displacement}; it must be 0 or more"))
            })?,
        };
        let byte = process.datatypes().byte();
        let element = representation.in_file(etype, byte)?;
        let tile = representation.in_file(filetype, byte)?;
        let view = View::new(displacement, element.layout().size(), tile.layout())
            .map_err(|error| Error::new(MPI_ERR_ARG, error.to_string()))?;
        if self.amode & MPI_MODE_RDONLY == 0 && view.overlaps() {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "the filetype's data overlaps, so that {} could not be written; use another filetype, or open the file \
                     with MPI_MODE_RDONLY",
                    self.describe()
                ),
            ));
        }
        Ok(Mapping {
            view,
            etype: Arc::clone(etype),
            filetype: Arc::clone(filetype),
            representation,
            byte: byte.layout().clone(),
        })
    }
}

/// An error at all members of the channel unless all gave the same argument.
async fn same_everywhere(channel: &Channel, argument: i64, name: &str) -> Result<()> {
    let all = channel.allgather(&argument.to_le_bytes()).await?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0_i64, |word, &byte| word << 8 | i64::from(byte));
    match all.chunks_exact(8).map(word).enumerate().find(|&(_, other)| other != word(&all[..8])) {
        None => Ok(()),
        Some((rank, other)) => Err(Error::new(
            MPI_ERR_NOT_SAME,
            format!(
                "{name} is {} at rank 0 and {other} at rank {rank} of the file's group; it must be the same at all",
                word(&all[..8])
            ),
        )),
    }
}
