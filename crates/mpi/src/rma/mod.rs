//! One-sided communication (MPI 5.0, chapter 12): windows, transfers, accumulates, and their synchronisation.
//!
//! Who puts or gets does all the work; the target need not do anything, and may compute. There are two ways to the memory of a
//! target on the same node:
//!
//! * allocated and shared windows lie in a [`Segment`] that all ranks of the node map: loads and stores;
//! * created and dynamic windows lie in memory of their own process: the kernel copies, or for a created one the target itself while it
//!   waits, if that is faster. What is attached to a dynamic one is published in the segment, and looked up before (see `attached`).
//!
//! Where there is neither (other nodes, or a kernel that does not permit it), requests go by messages, which an activity of the
//! target carries out: see `far` and `service`.
//!
//! Accumulates of every sort hold the update lock of their target, which lies in the segment too. So they are atomic with respect to
//! each other, whatever datatype and operation they have. When a call for either of the two ways returns, the operation is complete at the origin
//! and at the target; what is left for a flush is to order memory.

mod accumulate;
mod attached;
mod create;
mod epoch;
mod errand;
mod far;
mod lock;
mod service;
mod sync;
mod transfer;

pub use create::{Memory, Setting};
pub(crate) use errand::carry_out;
pub use parnass_portals::LentBlock;
pub use transfer::Place;

use crate::attribute::AttributeStore;
use crate::comm::Communicator;
use crate::constants::*;
use crate::errhandler::{Errhandler, ErrhandlerSlot};
use crate::group::Group;
use crate::info::Info;
use crate::{Error, Result};
use attached::Attached;
use epoch::Epochs;
use far::Far;
use parnass_base::UserAddress;
use parnass_portals::{ProcessId, Segment};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the memory of a window came to be (MPI_WIN_CREATE_FLAVOR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    Created,
    Allocated,
    Shared,
    Dynamic,
}

impl Flavor {
    /// As in the standard's ABI.
    pub fn code(self) -> i32 {
        match self {
            Flavor::Created => MPI_WIN_FLAVOR_CREATE,
            Flavor::Allocated => MPI_WIN_FLAVOR_ALLOCATE,
            Flavor::Shared => MPI_WIN_FLAVOR_SHARED,
            Flavor::Dynamic => MPI_WIN_FLAVOR_DYNAMIC,
        }
    }
}

/// The way to the memory of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// This process has it in its own address space, from here on.
    Direct(UserAddress),
    /// It lies at this address of the target, and the kernel copies.
    Kernel(UserAddress),
    /// By messages only.
    None,
}

/// What this process knows of one rank of a window.
#[derive(Clone, Debug)]
struct Target {
    process: ProcessId,
    reach: Reach,
    /// Where it has the memory itself that [`Reach::Direct`] is about.
    there: UserAddress,
    /// Its number among the members of the segment, if it is one.
    member: Option<u32>,
    size: u64,
    /// Bytes of one unit of displacement.
    unit: i64,
}

/// The memory of this process in a window, in the form in which the attributes of a window give it (MPI 5.0, section 12.2.6).
#[derive(Debug)]
#[repr(C)]
pub struct Figures {
    pub base: usize,
    pub size: i64,
    pub unit: i32,
    pub flavor: i32,
    pub model: i32,
}

/// Whether there were puts since memory was last ordered, so that a flush has to do it. Gets need nothing of the kind, and an
/// accumulate ends with the release of a lock.
///
/// Only where a thread's stores reach memory in their order (x86-64) is that known without further fences: a thread that finds the note
/// of its own put gone has its put in memory, whoever has taken the note away. Elsewhere every flush orders memory.
#[derive(Debug, Default)]
struct Unordered(AtomicBool);

impl Unordered {
    /// To be called after the put.
    #[inline(always)]
    fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Everything that this process has done to the window comes before all that it does from now on.
    #[inline(always)]
    fn order(&self) {
        if cfg!(not(target_arch = "x86_64")) || self.0.load(Ordering::Relaxed) {
            self.0.store(false, Ordering::Relaxed);
            Segment::fence();
        }
    }
}

/// A window. Lives in an [`Arc`]: the handle of the program holds one.
pub struct Window {
    /// A communicator of the window's own.
    communicator: Arc<Communicator>,
    flavor: Flavor,
    targets: Box<[Target]>,
    segment: Arc<Segment>,
    /// The memory of others that is reached so and lies in no segment: it stays mapped as long as the window.
    #[expect(dead_code, reason = "held")]
    mapped: Box<[Option<parnass_base::Window>]>,
    /// Where some rank cannot reach the memory of another.
    far: Option<Far>,
    epochs: Epochs,
    unordered: Unordered,
    figures: Figures,
    /// What is attached, if it is a dynamic window.
    attached: Option<Arc<Attached>>,
    attributes: AttributeStore,
    errhandler: ErrhandlerSlot,
    name: Mutex<Box<[u8]>>,
    info: Mutex<Info>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Window {
    /// MPI_Win_get_group.
    pub fn group(&self) -> &Group {
        self.communicator.group()
    }

    /// The rank of this process.
    pub fn rank(&self) -> i32 {
        self.communicator.rank()
    }

    /// How many processes it has.
    pub fn size(&self) -> i32 {
        self.communicator.size()
    }

    /// How its memory came to be.
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Base, size, unit, flavor and model at this process.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Its attributes.
    pub fn attributes(&self) -> &AttributeStore {
        &self.attributes
    }

    /// Its error handler.
    pub fn errhandler(&self) -> Errhandler {
        self.errhandler.get()
    }

    /// MPI_Win_set_errhandler.
    pub fn set_errhandler(&self, errhandler: Errhandler) {
        self.errhandler.set(errhandler);
    }

    /// MPI_Win_get_name; empty if none was set.
    pub fn name(&self) -> Box<[u8]> {
        guard(&self.name).clone()
    }

    /// MPI_Win_set_name: what is longer than MPI_MAX_OBJECT_NAME - 1 bytes is an error.
    pub fn set_name(&self, name: &[u8]) -> Result<()> {
        let longest = MPI_MAX_OBJECT_NAME as usize - 1;
        if name.len() > longest {
            return Err(Error::new(
                MPI_ERR_ARG,
                format!("the name has {} bytes; at most {longest} are allowed", name.len()),
            ));
        }
        *guard(&self.name) = name.into();
        Ok(())
    }

    /// How messages to people call it: its name, or what it is.
    pub fn describe(&self) -> String {
        let name = self.name();
        if name.is_empty() {
            format!("a window of {} processes", self.size())
        } else {
            name.escape_ascii().to_string()
        }
    }

    /// MPI_Win_get_info: the hints in use.
    pub fn info(&self) -> Info {
        guard(&self.info).clone()
    }

    /// MPI_Win_set_info: takes the hints that are known over; others are ignored, as the standard asks.
    pub fn set_info(&self, hints: &Info) {
        create::take_hints(&mut guard(&self.info), hints);
    }

    /// MPI_Win_shared_query: size, unit and address in this process of the memory of a rank, or of the first rank that has any
    /// (MPI_PROC_NULL). No address where there is none, or where it cannot be reached by loads and stores.
    pub fn shared_query(&self, rank: i32) -> Result<(u64, i64, UserAddress)> {
        let target = match rank {
            MPI_PROC_NULL => self.targets.iter().find(|target| target.size > 0).or(self.targets.first()),
            rank => self.targets.get(rank as usize),
        };
        let target = target.ok_or_else(|| self.bad_rank(rank))?;
        if self.flavor == Flavor::Dynamic {
            return Err(Error::new(
                MPI_ERR_RMA_FLAVOR,
                "the window was made by MPI_Win_create_dynamic, which shares no memory; use MPI_Win_allocate_shared",
            ));
        }
        Ok(match target.reach {
            Reach::Direct(address) if target.size > 0 => (target.size, target.unit, address),
            Reach::Direct(_) | Reach::Kernel(_) | Reach::None => (0, target.unit, UserAddress::NULL),
        })
    }

    /// MPI_Win_attach.
    pub fn attach(&self, base: UserAddress, size: u64) -> Result<()> {
        self.dynamic("MPI_Win_attach")?.attach(base, size)
    }

    /// MPI_Win_detach.
    pub fn detach(&self, base: UserAddress) -> Result<()> {
        self.dynamic("MPI_Win_detach")?.detach(base)
    }

    fn dynamic(&self, call: &str) -> Result<&Attached> {
        self.attached.as_deref().ok_or_else(|| {
            Error::new(
                MPI_ERR_RMA_FLAVOR,
                format!("{call} is for windows made by MPI_Win_create_dynamic; {} is none", self.describe()),
            )
        })
    }

    #[cold]
    fn bad_rank(&self, rank: i32) -> Error {
        Error::new(
            MPI_ERR_RANK,
            format!(
                "the rank is {rank}; allowed are the ranks 0 to {} of {} or MPI_PROC_NULL",
                self.size() - 1,
                self.describe()
            ),
        )
    }
}

impl std::fmt::Debug for Window {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({:?})", self.describe(), self.flavor)
    }
}
