//! The tool information interface (MPI 5.0, section 15.3): what lives outside of MPI's own life. It may be used before MPI_Init
//! and after MPI_Finalize, by several tools at once; every error is a return code.

use crate::objects::Process;
use parnass_counters::{COUNTERS, Counters, Home, Mark, Observer, watch};
use parnass_mpi::constants::*;
use parnass_tunables::{Origin, Settings, Value};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// What every procedure of the interface gives: nothing, or one of its error codes.
pub type Outcome = Result<(), c_int>;

/// A pointer that the program gave.
#[derive(Debug)]
pub struct Place<T>(*mut T);

impl<T> Clone for Place<T> {
    fn clone(&self) -> Place<T> {
        *self
    }
}

impl<T> Copy for Place<T> {}

impl<T> Place<T> {
    /// For the generated code: the program promises that there is room for what the procedure writes, or that it is null.
    pub fn new(pointer: *mut T) -> Place<T> {
        Place(pointer)
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// An error if it is null.
    pub fn required(self) -> Result<Place<T>, c_int> {
        if self.is_null() { Err(MPI_T_ERR_INVALID) } else { Ok(self) }
    }

    /// Its address, as what the standard calls extra state.
    pub fn address(self) -> *mut T {
        self.0
    }

    /// Another type of the same place.
    pub fn cast<U>(self) -> Place<U> {
        Place(self.0.cast())
    }

    /// `count` elements further.
    pub fn at(self, count: usize) -> Place<T> {
        Place(self.0.wrapping_add(count))
    }
}

impl<T: Copy> Place<T> {
    /// What stands there, wherever that is aligned.
    ///
    /// # Panics
    /// If it is null, which callers have excluded.
    pub fn get(self) -> T {
        assert!(!self.is_null(), "a null pointer was let in");
        // SAFETY: not null; the program promises a value there.
        unsafe { self.0.read_unaligned() }
    }

    /// Writes, unless it is null.
    pub fn set(self, value: T) {
        if !self.is_null() {
            // SAFETY: not null; the program promises room for a value.
            unsafe { self.0.write_unaligned(value) }
        }
    }
}

impl Place<c_char> {
    /// The text there.
    pub fn text(self) -> Result<String, c_int> {
        let pointer = self.required()?.0;
        // SAFETY: not null; the program promises a terminated string.
        Ok(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
    }

    /// Returns a string by the convention of section 15.3.3: as much of `text` as has room in `length`, which becomes the length of
    /// all of it, if it was cut or not asked for.
    pub fn give(self, length: Place<c_int>, text: &str) {
        if length.is_null() {
            return;
        }
        let (room, needed) = (length.get(), text.len() + 1);
        if self.is_null() || room <= 0 {
            return length.set(needed as c_int);
        }
        let count = text.len().min(room as usize - 1);
        for (index, byte) in text.as_bytes()[..count].iter().enumerate() {
            self.at(index).set(*byte as c_char);
        }
        self.at(count).set(0);
        length.set(needed as c_int);
    }

    /// Writes a text with its terminating zero, which has room there.
    pub fn put(self, text: &str) {
        for (index, byte) in text.bytes().chain([0]).enumerate() {
            self.at(index).set(byte as c_char);
        }
    }
}

/// Things by handles that recognise what is stale or none at all.
#[derive(Debug)]
pub struct Slots<T> {
    /// What tells handles of one class from those of others.
    class: u8,
    most: usize,
    slots: Vec<(u32, Option<T>)>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    const fn new(class: u8, most: usize) -> Slots<T> {
        Slots { class, most, slots: Vec::new(), free: Vec::new() }
    }

    /// A handle for a thing; none when there are too many.
    pub fn insert(&mut self, thing: T) -> Option<usize> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < self.most => {
                self.slots.push((0, None));
                self.slots.len() - 1
            }
            None => return None,
        };
        let (generation, place) = &mut self.slots[index];
        *generation = (*generation + 1) & 0xff_ffff;
        *place = Some(thing);
        Some(usize::from(self.class) << 56 | (*generation as usize) << 32 | index)
    }

    fn index(&self, handle: usize) -> Option<usize> {
        let index = handle & 0xffff_ffff;
        let (generation, place) = self.slots.get(index)?;
        let right = usize::from(self.class) << 24 | *generation as usize;
        (handle >> 32 == right && place.is_some()).then_some(index)
    }

    /// The thing with a handle.
    pub fn get(&self, handle: usize) -> Option<&T> {
        self.index(handle).and_then(|index| self.slots[index].1.as_ref())
    }

    /// The thing with a handle.
    pub fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        self.index(handle).and_then(|index| self.slots[index].1.as_mut())
    }

    /// Takes a thing out.
    pub fn remove(&mut self, handle: usize) -> Option<T> {
        let index = self.index(handle)?;
        self.free.push(index);
        self.slots[index].1.take()
    }

    /// All things with their handles.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let class = usize::from(self.class);
        self.slots.iter().enumerate().filter_map(move |(index, (generation, thing))| {
            Some((class << 56 | (*generation as usize) << 32 | index, thing.as_ref()?))
        })
    }

    /// All things.
    pub fn things_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|(_, thing)| thing.as_mut())
    }

    fn clear(&mut self) {
        let taken = (0..self.slots.len()).filter(|index| self.slots[*index].1.is_some()).collect::<Vec<_>>();
        for index in taken {
            self.slots[index].1 = None;
            self.free.push(index);
        }
    }
}

/// Handles of one class at most.
const HANDLES: usize = 1 << 16;
/// Sessions at most.
const SESSIONS: usize = 1 << 10;

/// What the tools of this process have.
#[derive(Debug)]
pub struct Tools {
    /// Calls of MPI_T_init_thread that no MPI_T_finalize has answered.
    users: u32,
    /// Rows of tunables.
    pub controls: Slots<usize>,
    pub sessions: Slots<()>,
    pub variables: Slots<crate::calls::tool::Variable>,
    pub registrations: Slots<Arc<crate::calls::tool::Registration>>,
    /// What a tool has written before MPI was initialised.
    pub written: Vec<(usize, Value)>,
    /// The values in force, once that is decided.
    pub settings: Option<Settings>,
    /// Where the process counts, once it does; it stays readable afterwards.
    pub counters: Option<Counters>,
    /// Callbacks are being called.
    pub calling: bool,
    /// Registrations that were freed meanwhile.
    pub freed: Vec<crate::calls::tool::Freed>,
}

static TOOLS: Mutex<Tools> = Mutex::new(Tools {
    users: 0,
    controls: Slots::new(0x61, HANDLES),
    sessions: Slots::new(0x62, SESSIONS),
    variables: Slots::new(0x63, HANDLES),
    registrations: Slots::new(0x64, HANDLES),
    written: Vec::new(),
    settings: None,
    counters: None,
    calling: false,
    freed: Vec::new(),
});

static OBSERVER: LazyLock<Arc<Observer>> = LazyLock::new(Arc::default);

/// The events of this process.
pub fn observer() -> &'static Arc<Observer> {
    &OBSERVER
}

/// The tools, whether or not the interface is initialised.
pub fn lock() -> MutexGuard<'static, Tools> {
    TOOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tools; an error where the interface is not initialised.
pub fn enter() -> Result<MutexGuard<'static, Tools>, c_int> {
    let tools = lock();
    if tools.users == 0 { Err(MPI_T_ERR_NOT_INITIALIZED) } else { Ok(tools) }
}

/// An error where the interface is not initialised.
pub fn check() -> Outcome {
    enter().map(drop)
}

impl Tools {
    /// MPI_T_init_thread.
    pub fn begin(&mut self) -> Outcome {
        self.users = self.users.checked_add(1).ok_or(MPI_T_ERR_CANNOT_INIT)?;
        Ok(())
    }

    /// MPI_T_finalize. The last one frees whatever is left.
    pub fn end(&mut self) -> Outcome {
        if self.users == 1 && self.calling {
            return Err(MPI_T_ERR_NOT_ACCESSIBLE);
        }
        self.users = self.users.checked_sub(1).ok_or(MPI_T_ERR_NOT_INITIALIZED)?;
        if self.users == 0 {
            self.controls.clear();
            self.sessions.clear();
            self.variables.clear();
            for registration in self.registrations.things_mut() {
                registration.end();
            }
            self.registrations.clear();
            self.watch();
            crate::calls::tool::want(self);
        }
        Ok(())
    }

    /// The values that a process would start with, or has.
    pub fn settings(&self) -> Settings {
        match &self.settings {
            Some(settings) => settings.clone(),
            None => self.with_written(crate::assemble::settings_of_environment().unwrap_or_default()),
        }
    }

    fn with_written(&self, mut settings: Settings) -> Settings {
        for (row, value) in &self.written {
            settings.replace(*row, value.clone(), Origin::Tool);
        }
        settings
    }

    /// What is kept of a counter.
    pub fn read(&self, home: Home) -> u64 {
        self.counters.as_ref().map_or(0, |counters| counters.read(home))
    }

    /// Has the process measure what started variables need, and no more.
    pub fn watch(&mut self) {
        let Some(counters) = &self.counters else { return };
        let mut wanted = 0;
        for variable in self.variables.things_mut().filter(|variable| variable.started) {
            let row = &COUNTERS[variable.row];
            if row.class == parnass_counters::Class::Timer {
                wanted |= watch::TIMES;
            }
            if Mark::of(row.home).is_some() {
                wanted |= watch::MARKS;
            }
        }
        for bit in [watch::TIMES, watch::MARKS] {
            match (wanted & bit != 0, counters.watch() & bit != 0) {
                (true, false) => counters.begin_watch(bit),
                (false, true) => counters.end_watch(bit),
                _ => {}
            }
        }
    }
}

/// What the process starts with: `decided`, but for what a tool has written.
pub fn decide(decided: Settings) -> Settings {
    let mut tools = lock();
    let settings = tools.with_written(decided);
    tools.settings = Some(settings.clone());
    settings
}

/// The process is there.
pub fn attach(process: &Process) {
    let mut tools = lock();
    tools.counters = Some(process.counters().clone());
    tools.watch();
}

/// The value of an opaque pointer, to be handed back to the program.
#[derive(Clone, Copy, Debug)]
pub struct Opaque(pub *mut c_void);

// SAFETY: never dereferenced here; what it means is the program's affair.
unsafe impl Send for Opaque {}
// SAFETY: as above.
unsafe impl Sync for Opaque {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_and_strange_handles_are_recognised() {
        let mut slots = Slots::new(0x61, 2);
        let first = slots.insert(1).unwrap();
        let second = slots.insert(2).unwrap();
        assert_eq!(slots.insert(3), None);
        assert_eq!((slots.get(first), slots.get(second)), (Some(&1), Some(&2)));
        assert_eq!(slots.remove(first), Some(1));
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.remove(first), None);
        let third = slots.insert(3).unwrap();
        assert_ne!(third, first);
        for strange in [0, 1, usize::MAX, third + 1, third ^ 1 << 60, third & 0xffff_ffff] {
            assert_eq!(slots.get(strange).filter(|_| strange != second), None, "{strange:#x}");
        }
        slots.clear();
        assert_eq!(slots.get(third), None);
        assert!(slots.insert(4).is_some() && slots.insert(5).is_some() && slots.insert(6).is_none());
    }

    #[test]
    fn strings_are_cut_and_their_lengths_told() {
        let mut room = [7; 8];
        let place = Place::new(room.as_mut_ptr());
        let mut length = 4;
        place.give(Place::new(&raw mut length), "parnass");
        assert_eq!(
            (length, &room[..5]),
            (8, [b'p' as c_char, b'a' as c_char, b'r' as c_char, 0, 7].as_slice())
        );
        Place::new(std::ptr::null_mut()).give(Place::new(&raw mut length), "abc");
        assert_eq!(length, 4);
        place.give(Place::new(std::ptr::null_mut()), "zzz");
        assert_eq!(room[0], b'p' as c_char);
        length = 0;
        place.give(Place::new(&raw mut length), "zz");
        assert_eq!((length, room[0]), (3, b'p' as c_char));
    }
}
