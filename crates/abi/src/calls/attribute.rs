//! Bodies of procedures: attribute.

use super::comm::handle_of;
use super::prelude::*;
use parnass_mpi::attribute::{AttributeStore, CopyRule, DeleteRule, Keyvals, ObjectKind};
use std::sync::atomic::{AtomicI32, Ordering};

/// The keys of the program. It may make them before MPI_Init.
static KEYVALS: Keyvals = Keyvals::new();

/// All copy callbacks of the ABI have one signature: (object, key, extra state, value, place of the copy, flag).
type CopyFunction = unsafe extern "C" fn(usize, i32, *mut c_void, *mut c_void, *mut c_void, *mut i32) -> i32;

/// All delete callbacks have one signature: (object, key, value, extra state).
type DeleteFunction = unsafe extern "C" fn(usize, i32, *mut c_void, *mut c_void) -> i32;

/// The values 0 and 1 that stand for MPI_COMM_NULL_COPY_FN and MPI_COMM_DUP_FN, and their siblings.
const NULL_COPY_FN: usize = MPI_COMM_NULL_COPY_FN;
const DUP_FN: usize = MPI_COMM_DUP_FN;

fn create(
    kind: ObjectKind,
    copy: Function<CopyFunction>,
    delete: Function<DeleteFunction>,
    extra_state: usize,
) -> i32 {
    let copy = match (copy.value(), copy.get()) {
        (DUP_FN, _) => CopyRule::Same,
        (NULL_COPY_FN, _) | (_, None) => CopyRule::Never,
        (_, Some(function)) => CopyRule::Call(Box::new(move |handle, number, value| {
            let (mut copied, mut flag) = (std::ptr::null_mut::<c_void>(), 0);
            let place = (&raw mut copied).cast::<c_void>();
            // SAFETY: the program gave a function of this signature; `place` and `flag` live during the call. The
            // words are pointers of the program that it gets back.
            let code = unsafe { function(handle, number, word(extra_state), word(value), place, &mut flag) };
            check(code, "copy", number)?;
            Ok((flag != 0).then_some(copied as usize))
        })),
    };
    let delete = match delete.get() {
        None => DeleteRule::Nothing,
        Some(function) => DeleteRule::Call(Box::new(move |handle, number, value| {
            // SAFETY: as above.
            let code = unsafe { function(handle, number, word(value), word(extra_state)) };
            check(code, "delete", number)
        })),
    };
    KEYVALS.create(kind, copy, delete)
}

/// A word of the program as the pointer that it was.
fn word(value: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(value)
}

fn check(code: i32, which: &str, number: i32) -> Result<()> {
    match code {
        MPI_SUCCESS => Ok(()),
        code => Err(Error::new(
            code,
            format!(
                "the program's {which} callback of the attribute key {number} returned error code {code}"
            ),
        )),
    }
}

fn free(kind: ObjectKind, keyval: &InOut<i32>) -> Result<()> {
    KEYVALS.free(kind, keyval.get())?;
    keyval.set(MPI_KEYVAL_INVALID);
    Ok(())
}

/// The predefined attributes of MPI_COMM_WORLD: C programs get the *address* of the value (MPI 5.0, section 9.1.2).
fn predefined(call: &Call, keyval: i32) -> Option<Option<&'static AtomicI32>> {
    static TAG_UB: AtomicI32 = AtomicI32::new(i32::MAX);
    static HOST: AtomicI32 = AtomicI32::new(MPI_PROC_NULL);
    static IO: AtomicI32 = AtomicI32::new(MPI_ANY_SOURCE);
    static WTIME_IS_GLOBAL: AtomicI32 = AtomicI32::new(1);
    static UNIVERSE_SIZE: AtomicI32 = AtomicI32::new(0);
    static LAST_USED_CODE: AtomicI32 = AtomicI32::new(0);
    static APPNUM: AtomicI32 = AtomicI32::new(0);
    let known = |place: &'static AtomicI32, value: i32| {
        place.store(value, Ordering::Relaxed);
        Some(place)
    };
    Some(match keyval {
        MPI_TAG_UB => Some(&TAG_UB),
        MPI_HOST => Some(&HOST),
        MPI_IO => Some(&IO),
        MPI_WTIME_IS_GLOBAL => Some(&WTIME_IS_GLOBAL),
        MPI_UNIVERSE_SIZE => known(&UNIVERSE_SIZE, call.process().universe_size()),
        MPI_LASTUSEDCODE => known(&LAST_USED_CODE, super::error::last_used_code()),
        MPI_APPNUM => match call.process().app_number() {
            number if number >= 0 => known(&APPNUM, number),
            _ => None,
        },
        _ => return None,
    })
}

fn check_not_predefined(call: &Call, keyval: i32) -> Result<()> {
    match predefined(call, keyval) {
        None => Ok(()),
        Some(_) => Err(Error::new(
            MPI_ERR_KEYVAL,
            format!("{keyval} is the key of a predefined attribute, which cannot be set or deleted"),
        )),
    }
}

fn give(value: Option<usize>, attribute_val: &Out<usize>, flag: &Out<bool>) {
    if let Some(value) = value {
        attribute_val.set(value);
    }
    flag.set(value.is_some());
}

/// MPI_Attr_delete.
pub fn attr_delete(call: &Call, comm: &Arc<Communicator>, keyval: i32) -> Result<()> {
    comm_delete_attr(call, comm, keyval)
}

/// MPI_Attr_get.
pub fn attr_get(
    call: &Call,
    comm: &Arc<Communicator>,
    keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<bool>,
) -> Result<()> {
    comm_get_attr(call, comm, keyval, attribute_val, flag)
}

/// MPI_Attr_put.
pub fn attr_put(call: &Call, comm: &Arc<Communicator>, keyval: i32, attribute_val: usize) -> Result<()> {
    comm_set_attr(call, comm, keyval, attribute_val)
}

/// MPI_Comm_create_keyval.
pub fn comm_create_keyval(
    _call: &Call,
    comm_copy_attr_fn: Function<callbacks::MPI_Comm_copy_attr_function>,
    comm_delete_attr_fn: Function<callbacks::MPI_Comm_delete_attr_function>,
    comm_keyval: Out<i32>,
    extra_state: usize,
) -> Result<()> {
    comm_keyval.set(create(ObjectKind::Communicator, comm_copy_attr_fn, comm_delete_attr_fn, extra_state));
    Ok(())
}

/// MPI_Comm_delete_attr.
pub fn comm_delete_attr(call: &Call, comm: &Arc<Communicator>, comm_keyval: i32) -> Result<()> {
    check_not_predefined(call, comm_keyval)?;
    let keyval = KEYVALS.find(ObjectKind::Communicator, comm_keyval)?;
    comm.attributes().delete(handle_of(comm), &keyval)
}

/// MPI_Comm_free_keyval.
pub fn comm_free_keyval(_call: &Call, comm_keyval: InOut<i32>) -> Result<()> {
    free(ObjectKind::Communicator, &comm_keyval)
}

/// The value under a key, if one is set. Whether there is such a key is asked only if none is.
fn found(attributes: &AttributeStore, kind: ObjectKind, keyval: i32) -> Result<Option<usize>> {
    match attributes.get_numbered(keyval) {
        None => KEYVALS.find(kind, keyval).map(|_| None),
        value => Ok(value),
    }
}

/// MPI_Comm_get_attr.
pub fn comm_get_attr(
    call: &Call,
    comm: &Arc<Communicator>,
    comm_keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<bool>,
) -> Result<()> {
    let value = match predefined(call, comm_keyval) {
        Some(place) => place.map(|place| place.as_ptr().expose_provenance()),
        None => found(comm.attributes(), ObjectKind::Communicator, comm_keyval)?,
    };
    give(value, &attribute_val, &flag);
    Ok(())
}

/// MPI_Comm_set_attr.
pub fn comm_set_attr(
    call: &Call,
    comm: &Arc<Communicator>,
    comm_keyval: i32,
    attribute_val: usize,
) -> Result<()> {
    check_not_predefined(call, comm_keyval)?;
    let keyval = KEYVALS.find(ObjectKind::Communicator, comm_keyval)?;
    comm.attributes().set(handle_of(comm), &keyval, attribute_val)
}

/// MPI_Keyval_create.
pub fn keyval_create(
    _call: &Call,
    copy_fn: Function<callbacks::MPI_Copy_function>,
    delete_fn: Function<callbacks::MPI_Delete_function>,
    keyval: Out<i32>,
    extra_state: usize,
) -> Result<()> {
    keyval.set(create(ObjectKind::Communicator, copy_fn, delete_fn, extra_state));
    Ok(())
}

/// MPI_Keyval_free.
pub fn keyval_free(_call: &Call, keyval: InOut<i32>) -> Result<()> {
    free(ObjectKind::Communicator, &keyval)
}

/// The program's handle of a datatype, for its callbacks.
fn handle_of_type(datatype: &Arc<Datatype>) -> usize {
    Datatype::table().handle_of(datatype).unwrap_or(MPI_DATATYPE_NULL)
}

/// MPI_Type_create_keyval.
pub fn type_create_keyval(
    _call: &Call,
    type_copy_attr_fn: Function<callbacks::MPI_Type_copy_attr_function>,
    type_delete_attr_fn: Function<callbacks::MPI_Type_delete_attr_function>,
    type_keyval: Out<i32>,
    extra_state: usize,
) -> Result<()> {
    type_keyval.set(create(ObjectKind::Datatype, type_copy_attr_fn, type_delete_attr_fn, extra_state));
    Ok(())
}

/// MPI_Type_delete_attr.
pub fn type_delete_attr(_call: &Call, datatype: &Arc<Datatype>, type_keyval: i32) -> Result<()> {
    let keyval = KEYVALS.find(ObjectKind::Datatype, type_keyval)?;
    datatype.attributes().delete(handle_of_type(datatype), &keyval)
}

/// MPI_Type_free_keyval.
pub fn type_free_keyval(_call: &Call, type_keyval: InOut<i32>) -> Result<()> {
    free(ObjectKind::Datatype, &type_keyval)
}

/// MPI_Type_get_attr.
pub fn type_get_attr(
    _call: &Call,
    datatype: &Arc<Datatype>,
    type_keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<bool>,
) -> Result<()> {
    give(found(datatype.attributes(), ObjectKind::Datatype, type_keyval)?, &attribute_val, &flag);
    Ok(())
}

/// MPI_Type_set_attr.
pub fn type_set_attr(
    _call: &Call,
    datatype: &Arc<Datatype>,
    type_keyval: i32,
    attribute_val: usize,
) -> Result<()> {
    let keyval = KEYVALS.find(ObjectKind::Datatype, type_keyval)?;
    datatype.attributes().set(handle_of_type(datatype), &keyval, attribute_val)
}

/// MPI_Win_create_keyval.
pub fn win_create_keyval(
    _call: &Call,
    win_copy_attr_fn: Function<callbacks::MPI_Win_copy_attr_function>,
    win_delete_attr_fn: Function<callbacks::MPI_Win_delete_attr_function>,
    win_keyval: Out<i32>,
    extra_state: usize,
) -> Result<()> {
    win_keyval.set(create(ObjectKind::Window, win_copy_attr_fn, win_delete_attr_fn, extra_state));
    Ok(())
}

/// MPI_Win_delete_attr.
pub fn win_delete_attr(_call: &Call, win: &Arc<Window>, win_keyval: i32) -> Result<()> {
    check_not_of_window(win, win_keyval)?;
    let keyval = KEYVALS.find(ObjectKind::Window, win_keyval)?;
    win.attributes().delete(super::window::handle_of(win), &keyval)
}

/// MPI_Win_free_keyval.
pub fn win_free_keyval(_call: &Call, win_keyval: InOut<i32>) -> Result<()> {
    free(ObjectKind::Window, &win_keyval)
}

/// The predefined attributes of a window: the base itself, and the addresses of the others (MPI 5.0, section 12.2.6).
fn of_window(win: &Window, keyval: i32) -> Option<usize> {
    let figures = win.figures();
    Some(match keyval {
        MPI_WIN_BASE => figures.base,
        MPI_WIN_SIZE => std::ptr::from_ref(&figures.size).expose_provenance(),
        MPI_WIN_DISP_UNIT => std::ptr::from_ref(&figures.unit).expose_provenance(),
        MPI_WIN_CREATE_FLAVOR => std::ptr::from_ref(&figures.flavor).expose_provenance(),
        MPI_WIN_MODEL => std::ptr::from_ref(&figures.model).expose_provenance(),
        _ => return None,
    })
}

fn check_not_of_window(win: &Window, keyval: i32) -> Result<()> {
    match of_window(win, keyval) {
        None => Ok(()),
        Some(_) => Err(Error::new(
            MPI_ERR_KEYVAL,
            format!("{keyval} is the key of a predefined attribute, which cannot be set or deleted"),
        )),
    }
}

/// MPI_Win_get_attr.
pub fn win_get_attr(
    _call: &Call,
    win: &Arc<Window>,
    win_keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<bool>,
) -> Result<()> {
    let value = match of_window(win, win_keyval) {
        Some(value) => Some(value),
        None => found(win.attributes(), ObjectKind::Window, win_keyval)?,
    };
    give(value, &attribute_val, &flag);
    Ok(())
}

/// MPI_Win_set_attr.
pub fn win_set_attr(_call: &Call, win: &Arc<Window>, win_keyval: i32, attribute_val: usize) -> Result<()> {
    check_not_of_window(win, win_keyval)?;
    let keyval = KEYVALS.find(ObjectKind::Window, win_keyval)?;
    win.attributes().set(super::window::handle_of(win), &keyval, attribute_val)
}
