//! Events (MPI 5.0, section 15.3.8).
//!
//! A thread of the program tells what waits in the observer's queue, at a point where nothing is locked, one event after the
//! other: so callbacks may do whatever the program may (MPI_T_CB_REQUIRE_NONE), and none runs beside another.

use crate::generated::callbacks::{
    MPI_T_event_cb_function, MPI_T_event_dropped_cb_function, MPI_T_event_free_cb_function,
};
use crate::tool::{self, Opaque, Outcome, Place, Tools};
use parnass_counters::{EVENTS, Element, EventName, Occurrence, SOURCES, Told};
use parnass_mpi::constants::*;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

/// What handles of instances have in their high bits.
const INSTANCE: usize = 0x65 << 56;
/// The safety levels, from the most permissive one on.
const LEVELS: [c_int; 4] = [
    MPI_T_CB_REQUIRE_NONE,
    MPI_T_CB_REQUIRE_MPI_RESTRICTED,
    MPI_T_CB_REQUIRE_THREAD_SAFE,
    MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
];
/// The level at which callbacks are called.
const CALLED_AT: c_int = MPI_T_CB_REQUIRE_NONE;

/// Who wants to be told of an event.
#[derive(Debug)]
pub struct Registration {
    event: EventName,
    alive: AtomicBool,
    callbacks: Mutex<Callbacks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Callbacks {
    /// By level.
    happened: [Option<(MPI_T_event_cb_function, Opaque)>; LEVELS.len()],
    dropped: Option<MPI_T_event_dropped_cb_function>,
}

impl Callbacks {
    /// The one of the lowest level: all are valid where they are called.
    fn chosen(&self) -> Option<(MPI_T_event_cb_function, Opaque)> {
        self.happened.iter().flatten().copied().next()
    }
}

/// A registration that was freed while callbacks were being called.
#[derive(Debug)]
pub struct Freed {
    handle: usize,
    callback: MPI_T_event_free_cb_function,
    user_data: Opaque,
}

impl Freed {
    fn tell(&self) {
        // SAFETY: the program gave this function for this call.
        unsafe { (self.callback)(self.handle, CALLED_AT, self.user_data.0) }
    }
}

impl Registration {
    fn callbacks(&self) -> MutexGuard<'_, Callbacks> {
        self.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody is called any more.
    pub fn end(&self) {
        self.alive.store(false, Ordering::Release);
    }

    fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }
}

thread_local! {
    /// The event whose callback runs on this thread, by its number.
    static CURRENT: Cell<Option<(usize, Occurrence)>> = const { Cell::new(None) };
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Has the observer keep what somebody wants to be told of, and nothing else.
pub fn want(tools: &Tools) {
    let wanted =
        tools.registrations.iter().filter(|(_, registration)| registration.callbacks().chosen().is_some());
    let wanted = wanted.fold(0, |bits, (_, registration)| bits | 1 << registration.event.0);
    tool::observer().want(wanted);
}

/// Tells everybody of one thing.
fn tell(told: &Told) {
    let event = match told {
        Told::Happened(occurrence) => occurrence.event,
        Told::Dropped(event, _) => *event,
    };
    let concerned: Vec<(usize, Arc<Registration>)> = {
        let mut tools = tool::lock();
        tools.calling = true;
        let all = tools.registrations.iter().filter(|(_, registration)| registration.event == event);
        all.map(|(handle, registration)| (handle, registration.clone())).collect()
    };
    for (handle, registration) in concerned {
        let callbacks = *registration.callbacks();
        let Some((happened, user_data)) = callbacks.chosen().filter(|_| registration.is_alive()) else {
            continue;
        };
        match told {
            Told::Happened(occurrence) => {
                let number = NUMBER.get().wrapping_add(1) & 0xffff_ffff;
                NUMBER.set(number);
                let outer = CURRENT.replace(Some((INSTANCE | number, *occurrence)));
                // SAFETY: the program registered this function with this data.
                unsafe { happened(INSTANCE | number, handle, CALLED_AT, user_data.0) }
                CURRENT.set(outer);
            }
            Told::Dropped(_, count) => {
                if let Some(dropped) = callbacks.dropped {
                    let count = i64::try_from(*count).unwrap_or(i64::MAX);
                    let source = EVENTS[event.0 as usize].source as c_int;
                    // SAFETY: as above.
                    unsafe { dropped(count, handle, source, CALLED_AT, user_data.0) }
                }
            }
        }
    }
    loop {
        let freed = {
            let mut tools = tool::lock();
            let freed = std::mem::take(&mut tools.freed);
            tools.calling = !freed.is_empty();
            freed
        };
        if freed.is_empty() {
            return;
        }
        freed.iter().for_each(Freed::tell);
    }
}

fn find(tools: &Tools, registration: usize) -> Result<&Arc<Registration>, c_int> {
    tools.registrations.get(registration).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

fn level(safety: c_int) -> Result<usize, c_int> {
    LEVELS.iter().position(|level| *level == safety).ok_or(MPI_T_ERR_INVALID)
}

/// A function of the program's; none for the null pointer.
fn function<T: Copy>(value: usize) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<usize>()) };
    // SAFETY: the types that this is used with are function pointers, and the program gave one of this type.
    (value != 0)
        .then(|| unsafe { std::mem::transmute_copy(&std::ptr::with_exposed_provenance::<c_void>(value)) })
}

// ---- sources

/// MPI_T_source_get_num.
pub fn source_get_num(num_sources: Place<c_int>) -> Outcome {
    tool::check()?;
    num_sources.required()?.set(SOURCES.len() as c_int);
    Ok(())
}

/// MPI_T_source_get_info. All sources share one clock.
pub fn source_get_info(
    source_index: c_int,
    name: Place<c_char>,
    name_len: Place<c_int>,
    desc: Place<c_char>,
    desc_len: Place<c_int>,
    ordering: Place<c_int>,
    ticks_per_second: Place<i64>,
    max_ticks: Place<i64>,
    info: Place<usize>,
) -> Outcome {
    tool::check()?;
    let source = &SOURCES[super::row(SOURCES, source_index)?];
    name.give(name_len, source.name);
    desc.give(desc_len, source.what);
    ordering.set(MPI_T_SOURCE_ORDERED);
    ticks_per_second.set(1_000_000_000);
    max_ticks.set(i64::MAX);
    super::give_info(info)
}

/// MPI_T_source_get_timestamp.
pub fn source_get_timestamp(source_index: c_int, timestamp: Place<i64>) -> Outcome {
    tool::check()?;
    super::row(SOURCES, source_index)?;
    timestamp.required()?.set(tool::observer().now_ns() as i64);
    Ok(())
}

// ---- event types

/// MPI_T_event_get_num.
pub fn event_get_num(num_events: Place<c_int>) -> Outcome {
    tool::check()?;
    num_events.required()?.set(EVENTS.len() as c_int);
    Ok(())
}

/// MPI_T_event_get_info.
pub fn event_get_info(
    event_index: c_int,
    name: Place<c_char>,
    name_len: Place<c_int>,
    verbosity: Place<c_int>,
    array_of_datatypes: Place<usize>,
    array_of_displacements: Place<i64>,
    num_elements: Place<c_int>,
    enumtype: Place<usize>,
    info: Place<usize>,
    desc: Place<c_char>,
    desc_len: Place<c_int>,
    bind: Place<c_int>,
) -> Outcome {
    tool::check()?;
    let row = super::row(EVENTS, event_index)?;
    let event = &EVENTS[row];
    name.give(name_len, event.name);
    verbosity.set(super::verbosity_of(event.verbosity));
    if !num_elements.is_null() {
        let room = usize::try_from(num_elements.get()).unwrap_or(0);
        let (places, _) = event.layout();
        for (index, ((_, element), place)) in event.elements.iter().zip(places).take(room).enumerate() {
            let datatype = match element {
                Element::Int => MPI_INT,
                Element::Unsigned => MPI_UNSIGNED,
                Element::Uint64 => MPI_UINT64_T,
            };
            if !array_of_datatypes.is_null() {
                array_of_datatypes.at(index).set(datatype);
            }
            if !array_of_displacements.is_null() {
                array_of_displacements.at(index).set(place as i64);
            }
        }
        num_elements.set(event.elements.len() as c_int);
    }
    enumtype.set(super::enumerations::elements_of(EventName(row as u32)));
    super::give_info(info)?;
    desc.give(desc_len, event.what);
    bind.set(MPI_T_BIND_NO_OBJECT);
    Ok(())
}

/// MPI_T_event_get_index.
pub fn event_get_index(name: Place<c_char>, event_index: Place<c_int>) -> Outcome {
    tool::check()?;
    let event_index = event_index.required()?;
    event_index.set(super::named(EVENTS.iter().map(|event| event.name), &name.text()?)?);
    Ok(())
}

// ---- registrations

/// MPI_T_event_handle_alloc.
pub fn event_handle_alloc(
    event_index: c_int,
    obj_handle: Place<c_void>,
    info: usize,
    event_registration: Place<usize>,
) -> Outcome {
    // No event is bound to an object.
    let _ = obj_handle;
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| tool::observer().listen(Box::new(tell)));
    let mut tools = tool::enter()?;
    let row = super::row(EVENTS, event_index)?;
    let event_registration = event_registration.required()?;
    super::check_info(info)?;
    let registration = Registration {
        event: EventName(row as u32),
        alive: AtomicBool::new(true),
        callbacks: Mutex::default(),
    };
    let handle = tools.registrations.insert(Arc::new(registration)).ok_or(MPI_T_ERR_OUT_OF_HANDLES)?;
    event_registration.set(handle);
    Ok(())
}

/// MPI_T_event_handle_set_info. No hint is supported.
pub fn event_handle_set_info(event_registration: usize, info: usize) -> Outcome {
    let tools = tool::enter()?;
    find(&tools, event_registration)?;
    super::check_info(info)
}

/// MPI_T_event_handle_get_info.
pub fn event_handle_get_info(event_registration: usize, info_used: Place<usize>) -> Outcome {
    let tools = tool::enter()?;
    find(&tools, event_registration)?;
    super::give_info(info_used.required()?)
}

/// MPI_T_event_register_callback.
pub fn event_register_callback(
    event_registration: usize,
    cb_safety: c_int,
    info: usize,
    user_data: Place<c_void>,
    event_cb_function: usize,
) -> Outcome {
    let tools = tool::enter()?;
    let registration = find(&tools, event_registration)?;
    let level = level(cb_safety)?;
    super::check_info(info)?;
    let callback = function(event_cb_function).map(|callback| (callback, Opaque(user_data.address())));
    registration.callbacks().happened[level] = callback;
    want(&tools);
    Ok(())
}

/// The registration, if it has a callback for this safety level.
fn check_callback(tools: &Tools, event_registration: usize, cb_safety: c_int) -> Outcome {
    let registration = find(tools, event_registration)?;
    let level = level(cb_safety)?;
    let there = registration.callbacks().happened[level].is_some();
    if there { Ok(()) } else { Err(MPI_T_ERR_INVALID) }
}

/// MPI_T_event_callback_set_info. No hint is supported.
pub fn event_callback_set_info(event_registration: usize, cb_safety: c_int, info: usize) -> Outcome {
    let tools = tool::enter()?;
    check_callback(&tools, event_registration, cb_safety)?;
    super::check_info(info)
}

/// MPI_T_event_callback_get_info.
pub fn event_callback_get_info(
    event_registration: usize,
    cb_safety: c_int,
    info_used: Place<usize>,
) -> Outcome {
    let tools = tool::enter()?;
    check_callback(&tools, event_registration, cb_safety)?;
    super::give_info(info_used.required()?)
}

/// MPI_T_event_set_dropped_handler.
pub fn event_set_dropped_handler(event_registration: usize, dropped_cb_function: usize) -> Outcome {
    let tools = tool::enter()?;
    find(&tools, event_registration)?.callbacks().dropped = function(dropped_cb_function);
    Ok(())
}

/// MPI_T_event_handle_free.
pub fn event_handle_free(
    event_registration: usize,
    user_data: Place<c_void>,
    free_cb_function: usize,
) -> Outcome {
    let mut tools = tool::enter()?;
    let registration = tools.registrations.remove(event_registration).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    registration.end();
    want(&tools);
    let Some(callback) = function(free_cb_function) else { return Ok(()) };
    let freed = Freed { handle: event_registration, callback, user_data: Opaque(user_data.address()) };
    if tools.calling {
        // A callback may be running, perhaps the one that calls this.
        tools.freed.push(freed);
    } else {
        drop(tools);
        freed.tell();
    }
    Ok(())
}

// ---- instances

/// The event whose callback runs now, if this is its handle.
fn instance(handle: usize) -> Result<Occurrence, c_int> {
    let current = CURRENT.get().filter(|(current, _)| *current == handle);
    current.map(|(_, occurrence)| occurrence).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

fn write_element(element: Element, value: u64, place: Place<c_void>) {
    match element {
        Element::Int => place.cast::<c_int>().set(value as c_int),
        Element::Unsigned => place.cast::<u32>().set(value as u32),
        Element::Uint64 => place.cast::<u64>().set(value),
    }
}

/// MPI_T_event_read.
pub fn event_read(event_instance: usize, element_index: c_int, buffer: Place<c_void>) -> Outcome {
    tool::check()?;
    let occurrence = instance(event_instance)?;
    let elements = EVENTS[occurrence.event.0 as usize].elements;
    let row = super::row(elements, element_index)?;
    write_element(elements[row].1, occurrence.elements[row], buffer.required()?);
    Ok(())
}

/// MPI_T_event_copy.
pub fn event_copy(event_instance: usize, buffer: Place<c_void>) -> Outcome {
    tool::check()?;
    let occurrence = instance(event_instance)?;
    let event = &EVENTS[occurrence.event.0 as usize];
    let bytes = buffer.required()?.cast::<u8>();
    for (((_, element), place), value) in event.elements.iter().zip(event.layout().0).zip(occurrence.elements)
    {
        write_element(*element, value, bytes.at(place).cast());
    }
    Ok(())
}

/// MPI_T_event_get_timestamp.
pub fn event_get_timestamp(event_instance: usize, event_timestamp: Place<i64>) -> Outcome {
    tool::check()?;
    let occurrence = instance(event_instance)?;
    event_timestamp.required()?.set(occurrence.time_ns as i64);
    Ok(())
}

/// MPI_T_event_get_source.
pub fn event_get_source(event_instance: usize, source_index: Place<c_int>) -> Outcome {
    tool::check()?;
    let occurrence = instance(event_instance)?;
    source_index.required()?.set(EVENTS[occurrence.event.0 as usize].source as c_int);
    Ok(())
}
