//! Handles: the numbers by which a C program names MPI objects.
//!
//! A predefined handle is a constant of the ABI below 4096. Any other is 4096 plus 31 bits or less:
//!
//! ```text
//!   bit 30      27 26        20 19                0
//!      +----------+------------+------------------+
//!      |  class   | generation |      index       |   + 4096
//!      +----------+------------+------------------+
//! ```
//!
//! so that it fits an `int` (MPI_Comm_toint and its siblings are casts), that a handle of the wrong class is
//! recognised, and that a handle whose object was freed is recognised by its generation. Looking up a handle takes
//! no lock: it pins the slot, and an object that is freed while it is pinned lives until the last pin is gone.

use parnass_mpi::constants::*;
use parnass_mpi::{Error, Result};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

/// The first handle that is not predefined.
pub const FIRST_DYNAMIC: usize = 4096;
pub const INDEX_BITS: u32 = 20;
pub const GENERATION_BITS: u32 = 7;
pub const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;
const CHUNK_BITS: u32 = 10;
const SLOTS_PER_CHUNK: usize = 1 << CHUNK_BITS;
const CHUNKS: usize = 1 << (INDEX_BITS - CHUNK_BITS);
const INDEX_MASK: usize = (1 << INDEX_BITS) - 1;

/// The most predefined objects that a class can have.
const MOST_PREDEFINED: usize = 256;

/// How many live objects of one class there can be. Indices from here on are those of objects that are made only when they are
/// looked up, see [`Class::make`].
pub const MOST_OBJECTS: usize = (1 << INDEX_BITS) - LATER;
/// How many such indices there are.
pub const LATER: usize = 1 << 16;

/// What is stored behind the handles of one class.
pub trait Class: Send + Sync + Sized + 'static {
    /// The class bits of its handles.
    const TAG: u32;
    /// The null handle, which is also the first of the class's predefined ones.
    const NULL: usize;
    /// How many handles from [`Class::NULL`] on are set aside for predefined objects.
    const PREDEFINED: usize;
    /// The error class of a bad handle.
    const ERROR: i32;
    /// What a person calls it.
    const NOUN: &'static str;
    /// The name of the null handle.
    const NULL_NAME: &'static str;
    /// Whether one object has one handle, which is then given out again (with a count) when the object is
    /// returned to the program again.
    const NAMED: bool;

    /// Whether looking one up is to take no call: of classes whose handles are not predefined, and whose calls are short.
    const FOUND_INLINE: bool = false;

    /// The table of the class.
    fn table() -> &'static Table<Self>;

    /// Whether its handles may be used before MPI is started, and by several threads whatever the level (MPI 5.0, section 11.6).
    const ALWAYS: bool = false;

    /// Whether only one thread at a time uses handles of this class now: then nothing needs an instruction that no other
    /// thread can come between.
    #[inline(always)]
    fn used_by_one_thread() -> bool {
        !Self::ALWAYS && crate::state::one_thread_at_a_time()
    }

    /// Makes the object behind one of the [`LATER`] handles, in a life of which the low bits are known.
    fn make(_number: u32, _life: u32) -> Option<Arc<Self>> {
        None
    }

    /// The handle of an object that was made so is gone: its number may be used again.
    fn unmake(_number: u32) {}

    /// A handle is not valid any more.
    #[inline(always)]
    fn freed() {}

    /// Takes an object whose handle is gone.
    #[inline(always)]
    fn end(object: Arc<Self>) {
        drop(object);
    }

    /// What makes two objects the same; only asked of a named class.
    fn identity(object: &Arc<Self>) -> usize {
        Arc::as_ptr(object) as usize
    }

    /// The predefined objects, in the order of their handles from [`Class::NULL`] on, where they exist before
    /// MPI_Init. (Those of a process are set with [`Table::define`].)
    fn predefined() -> Vec<Option<Arc<Self>>> {
        Vec::new()
    }
}

/// State of a slot, in one word: pins in the low 32 bits, then [`LIVE`] and [`RETIRED`], the generation from bit 40.
struct Slot<T> {
    word: AtomicU64,
    object: UnsafeCell<MaybeUninit<Arc<T>>>,
    /// How many times the handle has been given out, less how many times it was freed (named classes).
    references: AtomicU32,
    /// The next free slot, as index + 1.
    next_free: AtomicU32,
    index: u32,
}

const LIVE: u64 = 1 << 32;
const RETIRED: u64 = 1 << 33;
const PINS: u64 = LIVE - 1;
const GENERATION_SHIFT: u32 = 40;

// SAFETY: the object is written only by the one thread that holds the slot (from the free list, or as the winner of
// the exchange that ends its life) and read only while the word says LIVE, or with a pin taken while it did.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

/// The handles of one class.
pub struct Table<T: 'static> {
    /// The predefined objects by handle less [`Class::NULL`]; leaked, and set once each.
    predefined: [AtomicPtr<Arc<T>>; MOST_PREDEFINED],
    /// Runs [`Class::predefined`] once.
    defined: Once,
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    /// Index + 1 of the first free slot in the low half; a change count in the high half.
    free: AtomicU64,
    /// Chunks in use; held while another is added.
    growth: Mutex<usize>,
    /// Identity to handle, for a named class.
    names: Mutex<Option<BTreeMap<usize, usize>>>,
}

/// An object in use by a call: it stays valid even if another thread frees its handle.
pub struct Held<T: Class> {
    object: NonNull<Arc<T>>,
    /// The pinned slot; `None` for a predefined object, which lives for ever.
    slot: Option<&'static Slot<T>>,
}

impl<T: Class> Deref for Held<T> {
    type Target = Arc<T>;

    #[inline(always)]
    fn deref(&self) -> &Arc<T> {
        // SAFETY: predefined objects are never removed; any other is pinned.
        unsafe { self.object.as_ref() }
    }
}

impl<T: Class> Drop for Held<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            T::table().unpin(slot);
        }
    }
}

impl<T: Class> Held<T> {
    /// Whether it is a predefined object.
    pub fn is_predefined(&self) -> bool {
        self.slot.is_none()
    }

    /// Whether the handle was given out only once, so that freeing it ends it.
    pub fn is_last(&self) -> bool {
        self.slot.is_some_and(|slot| slot.references.load(Ordering::Relaxed) <= 1)
    }

    /// The handle.
    pub fn handle(&self) -> usize {
        match self.slot {
            Some(slot) => Table::<T>::handle(slot, slot.word.load(Ordering::Relaxed)),
            None => T::table().predefined_handle(self.object.as_ptr()),
        }
    }
}

impl<T: Class> Table<T> {
    /// A table with nothing in it.
    pub const fn new() -> Table<T> {
        Table {
            predefined: [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_PREDEFINED],
            defined: Once::new(),
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
            free: AtomicU64::new(0),
            growth: Mutex::new(0),
            names: Mutex::new(None),
        }
    }

    /// Fills in the predefined objects that exist from the start.
    fn define_all(&self) {
        self.defined.call_once(|| {
            for (offset, object) in T::predefined().into_iter().enumerate() {
                if let Some(object) = object {
                    self.place(offset, object);
                }
            }
        });
    }

    /// Sets a predefined object, once.
    pub fn define(&self, handle: usize, object: Arc<T>) {
        self.define_all();
        self.place(handle - T::NULL, object);
    }

    fn place(&self, offset: usize, object: Arc<T>) {
        const { assert!(T::PREDEFINED <= MOST_PREDEFINED) };
        let identity = T::identity(&object);
        let object = Box::into_raw(Box::new(object));
        let null = std::ptr::null_mut();
        // Release pairs with the Acquire in `find`.
        match self.predefined[offset].compare_exchange(null, object, Ordering::Release, Ordering::Relaxed) {
            Ok(_) if T::NAMED => {
                self.names().get_or_insert_default().insert(identity, T::NULL + offset);
            }
            Ok(_) => {}
            // SAFETY: not placed, so still this function's own.
            Err(_) => drop(unsafe { Box::from_raw(object) }),
        }
    }

    fn predefined_handle(&self, object: *const Arc<T>) -> usize {
        let place =
            self.predefined.iter().position(|place| std::ptr::eq(place.load(Ordering::Relaxed), object));
        T::NULL + place.unwrap_or(0)
    }

    fn names(&self) -> MutexGuard<'_, Option<BTreeMap<usize, usize>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(slot: &Slot<T>, word: u64) -> usize {
        Self::compose(slot.index as usize, word >> GENERATION_SHIFT)
    }

    /// The handle with an index and a generation, of which only the low bits are in it.
    #[inline(always)]
    pub fn compose(index: usize, generation: u64) -> usize {
        FIRST_DYNAMIC
            + ((T::TAG as usize) << (INDEX_BITS + GENERATION_BITS))
            + (((generation & GENERATION_MASK) as usize) << INDEX_BITS)
            + index
    }

    /// The index and the low bits of the generation in a handle of this class that is not predefined.
    #[inline(always)]
    pub fn parts(handle: usize) -> Option<(usize, u64)> {
        let bits = handle.wrapping_sub(FIRST_DYNAMIC);
        let generation = (bits >> INDEX_BITS) as u64 & GENERATION_MASK;
        (bits >> (INDEX_BITS + GENERATION_BITS) == T::TAG as usize).then_some((bits & INDEX_MASK, generation))
    }

    /// The handle of an object that is made when it is looked up. `number` is below [`LATER`].
    #[inline(always)]
    pub fn later_handle(number: u32, life: u32) -> usize {
        Self::compose(MOST_OBJECTS + number as usize, life.into())
    }

    /// The number and the low bits of the life of such an object.
    #[inline(always)]
    pub fn later(handle: usize) -> Option<(u32, u32)> {
        // The bits of the class, all above it, and those of the index that are set in these alone.
        const { assert!(MOST_OBJECTS | (LATER - 1) == INDEX_MASK) };
        let fixed = usize::MAX << (INDEX_BITS + GENERATION_BITS) | MOST_OBJECTS;
        let bits = handle.wrapping_sub(FIRST_DYNAMIC);
        let class = (T::TAG as usize) << (INDEX_BITS + GENERATION_BITS);
        let generation = (bits >> INDEX_BITS) as u64 & GENERATION_MASK;
        (bits & fixed == class | MOST_OBJECTS).then_some(((bits & (LATER - 1)) as u32, generation as u32))
    }

    #[inline]
    fn slot(&self, index: usize) -> Option<&'static Slot<T>> {
        let chunk = self.chunks[index >> CHUNK_BITS].load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: a chunk has SLOTS_PER_CHUNK slots and is never freed; the Acquire above pairs with the Release in
        // `grow`.
        Some(unsafe { &*chunk.add(index & (SLOTS_PER_CHUNK - 1)) })
    }

    /// The object behind a handle.
    #[inline(always)]
    pub fn find(&self, handle: usize) -> Option<Held<T>> {
        let offset = handle.wrapping_sub(T::NULL);
        if offset < T::PREDEFINED {
            if let Some(object) = NonNull::new(self.predefined[offset].load(Ordering::Acquire)) {
                return Some(Held { object, slot: None });
            }
            return self.find_undefined(offset);
        }
        if T::FOUND_INLINE { self.search(handle) } else { self.find_dynamic(handle) }
    }

    /// Whether there is an object behind a handle that is not predefined and not made [later](Table::later).
    #[inline]
    pub fn has(&self, handle: usize) -> bool {
        let Some((index, generation)) = Self::parts(handle) else { return false };
        self.slot(index).is_some_and(|slot| {
            let word = slot.word.load(Ordering::Relaxed);
            word & LIVE != 0 && (word >> GENERATION_SHIFT) & GENERATION_MASK == generation
        })
    }

    /// A predefined object that is not there: there is none, or it is the first look at this class.
    #[cold]
    fn find_undefined(&self, offset: usize) -> Option<Held<T>> {
        self.define_all();
        let object = NonNull::new(self.predefined[offset].load(Ordering::Acquire))?;
        Some(Held { object, slot: None })
    }

    #[inline(never)]
    fn find_dynamic(&self, handle: usize) -> Option<Held<T>> {
        self.search(handle)
    }

    #[inline(always)]
    fn search(&self, handle: usize) -> Option<Held<T>> {
        let (index, generation) = Self::parts(handle)?;
        let Some(slot) = self.slot(index) else { return self.find_later(handle) };
        // Acquire pairs with the Release in `insert`, which made the object visible.
        let word = Self::add(&slot.word, 1, Ordering::Acquire);
        if word & LIVE == 0 || (word >> GENERATION_SHIFT) & GENERATION_MASK != generation {
            self.unpin(slot);
            return self.find_later(handle);
        }
        Some(Held { object: NonNull::from(&slot.object).cast::<Arc<T>>(), slot: Some(slot) })
    }

    /// An object that is made now, if its handle is one of those.
    #[cold]
    fn find_later(&self, handle: usize) -> Option<Held<T>> {
        let (number, life) = Self::later(handle)?;
        let index = MOST_OBJECTS + number as usize;
        let making = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        if self.slot(index).is_none() {
            self.add_chunk(index >> CHUNK_BITS);
        }
        let slot = self.slot(index)?;
        let word = slot.word.load(Ordering::Acquire);
        if word & LIVE != 0 && Self::handle(slot, word) == handle {
            // Another thread has made it meanwhile.
            drop(making);
            return self.find_dynamic(handle);
        }
        let object = T::make(number, life)?;
        // SAFETY: the slot is not live, as its number is in use from when the object can be made until `unmake`; and whoever has made the
        // object, which can be made once, alone makes the slot so.
        unsafe { (*slot.object.get()).write(object) };
        let live = LIVE | u64::from(life) << GENERATION_SHIFT;
        // A failing look-up may have a pin on it at this moment. Release pairs with the Acquire in `find`. The closure always
        // gives a value.
        let _ = slot.word.fetch_update(Ordering::Release, Ordering::Relaxed, |word| Some(word & PINS | live));
        drop(making);
        self.find_dynamic(handle)
    }

    /// Adds to a word; returns what it was.
    #[inline(always)]
    fn add(word: &AtomicU64, more: u64, order: Ordering) -> u64 {
        if T::used_by_one_thread() {
            let before = word.load(Ordering::Relaxed);
            word.store(before.wrapping_add(more), Ordering::Relaxed);
            return before;
        }
        word.fetch_add(more, order)
    }

    /// Replaces a word if it is still what it was. May fail for no reason.
    #[inline(always)]
    fn replace(
        word: &AtomicU64,
        before: u64,
        after: u64,
        order: Ordering,
        failing: Ordering,
    ) -> std::result::Result<u64, u64> {
        if T::used_by_one_thread() {
            word.store(after, Ordering::Relaxed);
            return Ok(before);
        }
        word.compare_exchange_weak(before, after, order, failing)
    }

    #[inline]
    fn unpin(&self, slot: &'static Slot<T>) {
        // AcqRel: what was done with the object comes before its end, whoever ends it.
        let word = Self::add(&slot.word, u64::MAX, Ordering::AcqRel);
        if word & RETIRED != 0 && word & PINS == 1 {
            self.reclaim(slot);
        }
    }

    /// Ends a retired object without pins. Only the winner of the exchange does it.
    #[cold]
    fn reclaim(&self, slot: &'static Slot<T>) {
        let word = slot.word.load(Ordering::Acquire);
        if word & RETIRED == 0 || word & PINS != 0 {
            return;
        }
        if slot
            .word
            .compare_exchange(word, Self::next_life(word), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            self.give_back(slot);
        }
    }

    fn next_life(word: u64) -> u64 {
        (((word >> GENERATION_SHIFT) + 1) & GENERATION_MASK) << GENERATION_SHIFT
    }

    /// Takes the object out of a slot whose life has ended and puts the slot on the free list.
    fn give_back(&self, slot: &'static Slot<T>) {
        // SAFETY: this thread won the exchange that ended the object's life, so nobody else reads it.
        let object = unsafe { (*slot.object.get()).assume_init_read() };
        match (slot.index as usize).checked_sub(MOST_OBJECTS) {
            None => self.push_free(slot),
            Some(number) => T::unmake(number as u32),
        }
        T::end(object);
    }

    fn push_free(&self, slot: &Slot<T>) {
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            slot.next_free.store(head as u32, Ordering::Relaxed);
            let next = ((head >> 32).wrapping_add(1) << 32) | u64::from(slot.index + 1);
            // Release pairs with the Acquire in `pop_free`: the slot's content goes with it.
            match Self::replace(&self.free, head, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop_free(&self) -> Option<&'static Slot<T>> {
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let index = (head as u32).checked_sub(1)?;
            let slot = self.slot(index as usize)?;
            let next =
                ((head >> 32).wrapping_add(1) << 32) | u64::from(slot.next_free.load(Ordering::Relaxed));
            match Self::replace(&self.free, head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(slot),
                Err(now) => head = now,
            }
        }
    }

    /// Adds a chunk of free slots.
    #[cold]
    fn grow(&self) -> Result<()> {
        let mut chunks = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        if self.free.load(Ordering::Acquire) as u32 != 0 {
            return Ok(());
        }
        if *chunks == MOST_OBJECTS >> CHUNK_BITS {
            return Err(too_many::<T>(MOST_OBJECTS, "free or complete some"));
        }
        let slots = self.add_chunk(*chunks);
        *chunks += 1;
        for slot in slots.iter().rev() {
            self.push_free(slot);
        }
        Ok(())
    }

    /// Makes the slots of a chunk. The caller holds the lock of the growth.
    fn add_chunk(&self, chunk: usize) -> &'static [Slot<T>] {
        let first = chunk << CHUNK_BITS;
        let slots: Vec<Slot<T>> = (0..SLOTS_PER_CHUNK)
            .map(|place| Slot {
                word: AtomicU64::new(0),
                object: UnsafeCell::new(MaybeUninit::uninit()),
                references: AtomicU32::new(0),
                next_free: AtomicU32::new(0),
                index: (first + place) as u32,
            })
            .collect();
        let slots: &'static [Slot<T>] = Box::leak(slots.into_boxed_slice());
        // Release pairs with the Acquire in `slot`.
        self.chunks[chunk].store(slots.as_ptr().cast_mut(), Ordering::Release);
        slots
    }

    /// Gives an object a handle; one that it already has, for a named class.
    pub fn insert(&self, object: Arc<T>) -> Result<usize> {
        if !T::NAMED {
            return self.insert_new(object).map(|(_, handle)| handle);
        }
        self.define_all();
        let identity = T::identity(&object);
        let mut names = self.names();
        let names = names.get_or_insert_default();
        if let Some(&handle) = names.get(&identity) {
            if let Some(Held { slot: Some(slot), .. }) = &self.find(handle) {
                slot.references.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(handle);
        }
        let (slot, handle) = self.insert_new(object)?;
        slot.references.store(1, Ordering::Relaxed);
        names.insert(identity, handle);
        Ok(handle)
    }

    #[inline]
    fn insert_new(&self, object: Arc<T>) -> Result<(&'static Slot<T>, usize)> {
        let slot = loop {
            match self.pop_free() {
                Some(slot) => break slot,
                None => self.grow()?,
            }
        };
        // SAFETY: the slot came off the free list, so that this thread alone holds it.
        unsafe { (*slot.object.get()).write(object) };
        // Release pairs with the Acquire in `find`. A failing look-up may have a pin on it at this moment.
        // The slot was not live, so that adding sets.
        let word = Self::add(&slot.word, LIVE, Ordering::Release);
        Ok((slot, Self::handle(slot, word)))
    }

    /// The handle of an object that is known to the program.
    pub fn handle_of(&self, object: &Arc<T>) -> Option<usize> {
        self.define_all();
        self.names().as_ref()?.get(&T::identity(object)).copied()
    }

    /// Frees the handle of an object; the object lives on while others hold it. A predefined object stays. Returns
    /// whether the handle is now invalid (a named one that was given out twice is not).
    #[inline]
    pub fn release(&self, held: Held<T>) -> bool {
        let Some(slot) = held.slot else { return false };
        if T::NAMED {
            let mut names = self.names();
            if slot.references.fetch_sub(1, Ordering::Relaxed) > 1 {
                return false;
            }
            if let Some(names) = names.as_mut() {
                names.remove(&T::identity(&held));
            }
        }
        std::mem::forget(held);
        T::freed();
        let mut word = slot.word.load(Ordering::Relaxed);
        loop {
            if word & LIVE == 0 {
                // Another thread has freed it first.
                self.unpin(slot);
                return false;
            }
            let (next, ends) = match word & PINS {
                1 => (Self::next_life(word), true),
                _ => (word & !LIVE | RETIRED, false),
            };
            match Self::replace(&slot.word, word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if ends => self.give_back(slot),
                Ok(_) => self.unpin(slot),
                Err(now) => {
                    word = now;
                    continue;
                }
            }
            return true;
        }
    }

    /// How many handles of the class are alive, without the predefined ones.
    pub fn live(&self) -> usize {
        let chunks = *self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        (0..chunks << CHUNK_BITS)
            .filter(|&index| {
                self.slot(index).is_some_and(|slot| slot.word.load(Ordering::Relaxed) & LIVE != 0)
            })
            .count()
    }
}

impl<T: Class> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The object behind the argument `name`.
#[inline(always)]
pub fn get<T: Class>(handle: usize, name: &str) -> Result<Held<T>> {
    match T::table().find(handle) {
        Some(held) => Ok(held),
        None => Err(bad::<T>(handle, name)),
    }
}

/// As [`get`], where the null handle is allowed.
#[inline(always)]
pub fn get_nullable<T: Class>(handle: usize, name: &str) -> Result<Option<Held<T>>> {
    if handle == T::NULL { Ok(None) } else { get(handle, name).map(Some) }
}

/// Says what is wrong with a handle.
#[cold]
pub fn bad<T: Class>(handle: usize, name: &str) -> Error {
    let (noun, null) = (T::NOUN, T::NULL_NAME);
    let text = if handle == T::NULL {
        format!("{name} is {null}; a valid {noun} is needed")
    } else if handle == 0 {
        format!("{name} is 0, which is never a handle (an uninitialised variable?); a valid {noun} is needed")
    } else if let Some(other) = class_of(handle).filter(|&other| other != T::NOUN) {
        format!("{name} ({handle:#x}) is a handle of the class {other}; a valid {noun} is needed")
    } else if class_of(handle).is_some() && handle >= FIRST_DYNAMIC {
        format!("{name} ({handle:#x}) was freed, or never created; a valid {noun} is needed")
    } else {
        format!("{name} ({handle:#x}) is not a handle; a valid {noun} is needed")
    };
    Error::new(T::ERROR, text)
}

/// Says that `most` objects of a class are alive, and what to do with them.
#[cold]
pub fn too_many<T: Class>(most: usize, remedy: &str) -> Error {
    let noun = T::NOUN;
    let text = format!("{most} objects of the class {noun} are alive, and there can be no more; {remedy}");
    Error::new(MPI_ERR_NO_MEM, text)
}

/// Which class a handle would belong to.
fn class_of(handle: usize) -> Option<&'static str> {
    const NOUNS: [(u32, usize, usize, &str); 11] = [
        (0, MPI_REQUEST_NULL, 1, "request"),
        (1, MPI_COMM_NULL, 8, "communicator"),
        (2, MPI_DATATYPE_NULL, 256, "datatype"),
        (3, MPI_GROUP_NULL, 8, "group"),
        (4, MPI_OP_NULL, 32, "operation"),
        (5, MPI_ERRHANDLER_NULL, 4, "error handler"),
        (6, MPI_INFO_NULL, 8, "info object"),
        (7, MPI_MESSAGE_NULL, 8, "message"),
        (8, MPI_FILE_NULL, 8, "file"),
        (9, MPI_WIN_NULL, 8, "window"),
        (10, MPI_SESSION_NULL, 8, "session"),
    ];
    let tag = handle.wrapping_sub(FIRST_DYNAMIC) >> (INDEX_BITS + GENERATION_BITS);
    let found = if handle < FIRST_DYNAMIC {
        NOUNS.iter().find(|&&(_, null, count, _)| (null..null + count).contains(&handle))
    } else {
        NOUNS.iter().find(|&&(class, ..)| class as usize == tag)
    };
    found.map(|&(.., noun)| noun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    static DROPPED: AtomicUsize = AtomicUsize::new(0);

    struct Thing(u32);

    impl Drop for Thing {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Class for Thing {
        const TAG: u32 = 3;
        const NULL: usize = 0x108;
        const PREDEFINED: usize = 8;
        const ERROR: i32 = MPI_ERR_GROUP;
        const NOUN: &'static str = "thing";
        const NULL_NAME: &'static str = "THING_NULL";
        const NAMED: bool = true;

        fn table() -> &'static Table<Thing> {
            static TABLE: Table<Thing> = Table::new();
            &TABLE
        }

        fn predefined() -> Vec<Option<Arc<Thing>>> {
            vec![None, Some(Arc::new(Thing(1)))]
        }
    }

    #[test]
    fn a_handle_lives_from_insert_to_release() {
        let table = Thing::table();
        let object = Arc::new(Thing(7));
        let handle = table.insert(object.clone()).unwrap();
        assert!((FIRST_DYNAMIC..1 << 31).contains(&handle));
        assert_eq!(table.find(handle).unwrap().0, 7);
        assert_eq!(table.insert(object.clone()).unwrap(), handle, "one object, one handle");
        assert_eq!(table.handle_of(&object), Some(handle));
        assert!(!table.release(table.find(handle).unwrap()), "given out twice");
        let pinned = table.find(handle).unwrap();
        assert!(table.release(table.find(handle).unwrap()));
        assert_eq!(pinned.0, 7);
        assert!(table.find(handle).is_none());
        assert_eq!(Arc::strong_count(&object), 2);
        drop(pinned);
        assert_eq!(Arc::strong_count(&object), 1);
        assert_eq!(table.handle_of(&object), None);
        let next = table.insert(Arc::new(Thing(8))).unwrap();
        assert_ne!(next, handle);
        assert!(table.find(handle).is_none());
        assert_eq!(get::<Thing>(handle, "x").err().unwrap().class(), MPI_ERR_GROUP);
    }

    #[test]
    fn predefined_and_garbage() {
        let table = Thing::table();
        let held = table.find(0x109).unwrap();
        assert!(held.is_predefined());
        assert_eq!(held.handle(), 0x109);
        assert!(!table.release(held));
        assert_eq!(table.find(0x109).unwrap().0, 1);
        for garbage in [0, 1, 0x108, 0x10a, 4095, 4096, 4097, 1 << 31, usize::MAX, usize::MAX - 4095] {
            assert!(table.find(garbage).is_none(), "{garbage:#x}");
        }
        for tag in 0..16 {
            assert!(table.find(FIRST_DYNAMIC + (tag << 27) + 0xfffff).is_none());
        }
    }

    #[test]
    fn threads_that_look_up_while_another_frees() {
        let table = Thing::table();
        let shared = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while done.load(Ordering::Relaxed) == 0 {
                        let handle = shared.load(Ordering::Relaxed);
                        if let Some(held) = table.find(handle) {
                            assert_eq!(held.0, 1234);
                        }
                    }
                });
            }
            for _ in 0..20_000 {
                let handle = table.insert(Arc::new(Thing(1234))).unwrap();
                shared.store(handle, Ordering::Relaxed);
                assert!(table.release(table.find(handle).unwrap()));
            }
            done.store(1, Ordering::Relaxed);
        });
        assert!(DROPPED.load(Ordering::Relaxed) >= 20_000);
    }
}
