//! The making and freeing of windows (MPI 5.0, section 12.2).

use super::attached::{self, Attached};
use super::epoch::Epochs;
use super::far::Far;
use super::service::{Served, Service};
use super::{Figures, Flavor, Reach, Target, Unordered, Window};
use crate::attribute::AttributeStore;
use crate::coll::{Call, Collective, Side};
use crate::comm::Communicator;
use crate::constants::*;
use crate::errhandler::{Errhandler, ErrhandlerSlot};
use crate::info::Info;
use crate::process::{Process, portal_error};
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_portals::LentBlock;
use std::sync::{Arc, Mutex};

/// The memory that a process gives to a window, or wants from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// MPI_Win_create; `place`: by which others map it, or 0.
    Own { base: UserAddress, size: i64, place: u64 },
    /// MPI_Win_allocate.
    Allocate { size: i64 },
    /// MPI_Win_allocate_shared.
    Share { size: i64 },
    /// MPI_Win_create_dynamic.
    Dynamic,
}

/// What a process says when a window is made.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub memory: Memory,
    /// Bytes of one unit of displacement.
    pub unit: i64,
    pub hints: &'a Info,
}

/// The parts of an allocated window start at multiples of this, unless they have to follow one another.
const PART_ALIGNMENT: u64 = parnass_base::PAGE as u64;

impl Memory {
    fn flavor(self) -> Flavor {
        match self {
            Memory::Own { .. } => Flavor::Created,
            Memory::Allocate { .. } => Flavor::Allocated,
            Memory::Share { .. } => Flavor::Shared,
            Memory::Dynamic => Flavor::Dynamic,
        }
    }

    fn size(self) -> i64 {
        match self {
            Memory::Own { size, .. } | Memory::Allocate { size } | Memory::Share { size } => size,
            Memory::Dynamic => 0,
        }
    }

    fn base(self) -> UserAddress {
        match self {
            Memory::Own { base, .. } => base,
            _ => UserAddress::NULL,
        }
    }

    fn place(self) -> u64 {
        match self {
            Memory::Own { place, .. } => place,
            _ => 0,
        }
    }

    /// Whether it is to lie in the segment.
    fn is_allocated(self) -> bool {
        matches!(self, Memory::Allocate { .. } | Memory::Share { .. })
    }
}

/// Hints that windows know (MPI 5.0, section 12.2.1), with their defaults.
const KNOWN_HINTS: [(&[u8], &[u8]); 6] = [
    (b"no_locks", b"false"),
    (b"accumulate_ordering", b"rar,raw,war,waw"),
    (b"accumulate_ops", b"same_op_no_op"),
    (b"same_size", b"false"),
    (b"same_disp_unit", b"false"),
    (b"alloc_shared_noncontig", b"false"),
];

/// Takes the hints that are known over.
pub(super) fn take_hints(info: &mut Info, hints: &Info) {
    for (key, value) in hints.iter() {
        let Some((_, usual)) = KNOWN_HINTS.iter().find(|(known, _)| *known == key) else { continue };
        let fits = match *usual {
            b"false" => value == b"true" || value == b"false",
            _ => true,
        };
        if fits {
            info.set(key, value).expect("a known hint has a valid key, and its value was one already");
        }
    }
}

fn initial_hints(hints: &Info) -> Info {
    let mut info = Info::new();
    for (key, value) in KNOWN_HINTS {
        info.set(key, value).expect("a known hint has a valid key and a short value");
    }
    take_hints(&mut info, hints);
    info
}

impl Setting<'_> {
    fn check(&self, communicator: &Communicator) -> Result<()> {
        if communicator.is_inter() {
            return Err(Error::new(
                MPI_ERR_COMM,
                format!(
                    "{} is an intercommunicator; a window needs an intracommunicator",
                    communicator.describe()
                ),
            ));
        }
        if self.memory.size() < 0 {
            return Err(Error::new(
                MPI_ERR_SIZE,
                format!("size is {}; it must be 0 or more", self.memory.size()),
            ));
        }
        if self.unit <= 0 {
            return Err(Error::new(
                MPI_ERR_DISP,
                format!("disp_unit is {}; it must be 1 or more", self.unit),
            ));
        }
        if self.memory.size() > 0 && matches!(self.memory, Memory::Own { base: UserAddress::NULL, .. }) {
            return Err(Error::new(
                MPI_ERR_BASE,
                format!(
                    "base is a null pointer, but size is {}; give the address of the memory",
                    self.memory.size()
                ),
            ));
        }
        Ok(())
    }

    fn may_leave_gaps(&self) -> bool {
        !matches!(self.memory, Memory::Share { .. })
            || self.hints.value(b"alloc_shared_noncontig") == Some(b"true")
    }
}

/// What every process tells the others about itself.
struct Shares {
    sizes: Vec<u64>,
    units: Vec<i64>,
    bases: Vec<u64>,
    places: Vec<u64>,
    /// Whether all allow gaps.
    gaps: bool,
}

impl Shares {
    fn gather(process: &Process, communicator: &Arc<Communicator>, setting: &Setting<'_>) -> Result<Shares> {
        let mine = [
            setting.memory.size() as u64,
            setting.unit as u64,
            setting.memory.base().value() as u64,
            setting.memory.place(),
            u64::from(setting.may_leave_gaps()),
        ];
        let all = gather_words(process, communicator, mine)?;
        Ok(Shares {
            sizes: all.iter().map(|words| words[0]).collect(),
            units: all.iter().map(|words| words[1] as i64).collect(),
            bases: all.iter().map(|words| words[2]).collect(),
            places: all.iter().map(|words| words[3]).collect(),
            gaps: all.iter().all(|words| words[4] != 0),
        })
    }

    /// Where the parts of these ranks start in a segment, and where the last one ends.
    fn starts(&self, ranks: &[usize]) -> Option<(Vec<u64>, u64)> {
        let mut end = 0_u64;
        let mut starts = Vec::with_capacity(ranks.len());
        for rank in ranks {
            if self.gaps {
                end = end.checked_next_multiple_of(PART_ALIGNMENT)?;
            }
            starts.push(end);
            end = end.checked_add(self.sizes[*rank])?;
        }
        (end < 1 << 62).then_some((starts, end))
    }
}

/// The words of every process, by rank, at all of them.
fn gather_words<const COUNT: usize>(
    process: &Process,
    communicator: &Arc<Communicator>,
    mine: [u64; COUNT],
) -> Result<Vec<[u64; COUNT]>> {
    let bytes = COUNT * size_of::<u64>();
    let size = communicator.size() as usize;
    let (own, all) = (Scratch::new(bytes), Scratch::new(bytes * size));
    for (index, word) in mine.iter().enumerate() {
        own.address().offset(8 * index as i64).write_word(*word);
    }
    let mut call = Call::new(communicator, Collective::Allgather);
    let datatype = process.datatypes().byte();
    call.send = Side::Even { address: own.address(), count: bytes as u64, datatype };
    call.recv = Side::Even { address: all.address(), count: bytes as u64, datatype };
    process.collective(&call)?;
    let word =
        |rank: usize, index: usize| all.address().offset((bytes * rank + 8 * index) as i64).read_word();
    Ok((0..size).map(|rank| std::array::from_fn(|index| word(rank, index))).collect())
}

#[cold]
fn failed_elsewhere(rank: usize) -> Error {
    Error::new(
        MPI_ERR_NO_MEM,
        format!(
            "rank {rank} has no shared memory for its part of the window; make smaller windows, or free some that are no \
             longer used"
        ),
    )
}

impl Process {
    /// Memory for MPI_Alloc_mem that windows of other processes reach as this one does; `None`: it had better have any other.
    pub fn lend(&self, size: usize) -> Option<LentBlock> {
        self.nic().lend(size)
    }
}

impl Window {
    /// MPI_Win_create, MPI_Win_allocate, MPI_Win_allocate_shared and MPI_Win_create_dynamic: collective over `communicator`.
    pub fn make(
        process: &Arc<Process>,
        communicator: &Arc<Communicator>,
        setting: &Setting<'_>,
    ) -> Result<Arc<Window>> {
        setting.check(communicator)?;
        let memory = setting.memory;
        let group = communicator.group();
        let size = communicator.size() as usize;
        let near: Vec<usize> =
            (0..size).filter(|rank| process.nic().shares_memory(group.process(*rank as i32))).collect();
        if memory.flavor() == Flavor::Shared && near.len() < size {
            return Err(Error::new(
                MPI_ERR_RMA_SHARED,
                format!(
                    "of the {size} processes of {} only {} share memory with this one; split the communicator with \
                     MPI_Comm_split_type and MPI_COMM_TYPE_SHARED",
                    communicator.describe(),
                    near.len()
                ),
            ));
        }
        let own = communicator.duplicate_for_library(process)?;
        let shares = Shares::gather(process, &own, setting)?;
        let rank = own.rank() as usize;
        let too_large = || {
            Error::new(MPI_ERR_SIZE, "the sizes of all processes together are more than an address space has")
        };
        let (starts, bytes) = match memory.flavor() {
            Flavor::Allocated | Flavor::Shared => shares.starts(&near).ok_or_else(too_large)?,
            Flavor::Created => (Vec::new(), 0),
            Flavor::Dynamic => (Vec::new(), (near.len() * attached::ROOM_BYTES) as u64),
        };
        // The first rank of each node makes the segment.
        let made = match near.first() {
            Some(first) if *first == rank => {
                process.nic().make_segment(near.len() as u32, bytes as usize).map(Some)
            }
            _ => Ok(None),
        };
        let mine = made.as_ref().ok().and_then(Option::as_ref).map_or(0, |made| made.name());
        let names = gather_words(process, &own, [mine])?;
        let name = near.first().map_or(0, |first| names[*first][0]);
        let me = near.iter().position(|other| *other == rank).unwrap_or(0);
        let opened = made.and_then(|made| {
            let members = near.iter().map(|other| group.process(*other as i32)).collect();
            let segment = process.nic().open_segment(name, made, members, bytes as usize)?;
            match memory.flavor() {
                Flavor::Allocated | Flavor::Shared => {
                    segment.reserve(starts[me] as usize, memory.size() as usize)?;
                }
                Flavor::Created => {}
                Flavor::Dynamic => Attached::reserve_first(&segment, me)?,
            }
            Ok(segment)
        });
        // What of the others' memory can be mapped here. Where there is no address space for it, the kernel copies.
        let map = |near: &usize| {
            let (place, size) = (shares.places[*near], shares.sizes[*near]);
            let is_lent = place != 0 && size != 0 && *near != rank;
            if is_lent { process.nic().map_lent(place, size as usize).ok() } else { None }
        };
        let mapped: Box<[_]> = near.iter().map(map).collect();
        let own_rank = rank;
        let sees = |(rank, mapped): (&usize, &Option<_>)| {
            let reaches = || process.nic().reaches(group.process(*rank as i32));
            memory.is_allocated() || mapped.is_some() || *rank == own_rank || reaches()
        };
        let lacks = near.len() < size || !near.iter().zip(&mapped).all(sees);
        // Nobody lets go of the segment before all have opened it.
        let own_part = opened.as_ref().ok().filter(|_| memory.is_allocated());
        let own_address = own_part
            .map_or(memory.base(), |segment| segment.address(starts[me] as usize, memory.size() as usize));
        let outcomes = gather_words(
            process,
            &own,
            [u64::from(opened.is_ok()), u64::from(lacks), own_address.value() as u64],
        )?;
        let segment = Arc::new(opened.map_err(portal_error)?);
        if let Some(failed) = outcomes.iter().position(|outcome| outcome[0] == 0) {
            return Err(failed_elsewhere(failed));
        }

        let target = |rank: usize| {
            let other = group.process(rank as i32);
            let member = near.iter().position(|near| *near == rank);
            let address = UserAddress::restore(shares.bases[rank] as usize);
            let lent = member.and_then(|member| mapped[member].as_ref());
            let reach = match (member, lent) {
                (_, Some(part)) => Reach::Direct(part.address(0, part.len())),
                (Some(member), _) if memory.is_allocated() => {
                    Reach::Direct(segment.address(starts[member] as usize, shares.sizes[rank] as usize))
                }
                (Some(_), _) if other == process.me() => Reach::Direct(address),
                (Some(_), _) if process.nic().reaches(other) => Reach::Kernel(address),
                _ => Reach::None,
            };
            Target {
                process: other,
                reach,
                there: UserAddress::restore(outcomes[rank][2] as usize),
                member: member.map(|member| member as u32),
                size: shares.sizes[rank],
                unit: shares.units[rank],
            }
        };
        let targets: Box<[Target]> = (0..size).map(target).collect();
        let base = match targets[rank].reach {
            Reach::Direct(address) => address,
            Reach::Kernel(_) | Reach::None => UserAddress::NULL,
        };
        let attached =
            (memory.flavor() == Flavor::Dynamic).then(|| Arc::new(Attached::new(&segment, near.len(), me)));
        let far = if outcomes.iter().any(|outcome| outcome[1] != 0) {
            let served = Served {
                communicator: Arc::clone(&own),
                own: targets[rank].clone(),
                base,
                segment: Arc::clone(&segment),
                member: me as u32,
                attached: attached.clone(),
            };
            Some(Far::start(process, Service::new(served), size))
        } else {
            None
        };
        let figures = Figures {
            base: base.value(),
            size: memory.size(),
            unit: i32::try_from(setting.unit).unwrap_or(i32::MAX),
            flavor: memory.flavor().code(),
            model: MPI_WIN_UNIFIED,
        };
        Ok(Arc::new(Window {
            flavor: memory.flavor(),
            epochs: Epochs::new(size),
            unordered: Unordered::default(),
            targets,
            segment,
            mapped,
            far,
            figures,
            attached,
            attributes: AttributeStore::new(),
            errhandler: ErrhandlerSlot::new(Errhandler::Fatal),
            name: Mutex::default(),
            info: Mutex::new(initial_hints(setting.hints)),
            communicator: own,
        }))
    }

    /// MPI_Win_free: collective. The attributes must have been deleted before. The memory goes with the last holder of the window.
    pub fn free(&self, process: &Process) -> Result<()> {
        self.epochs.require_closed(self)?;
        self.settle_all(process)?;
        process.collective(&Call::new(&self.communicator, Collective::Barrier))?;
        self.stop_service(process)
    }
}
